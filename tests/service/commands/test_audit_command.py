"""`trainmem audit` at a terminal: what an operator types, sees, and gets as exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.audit.service import append
from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries
from tests.support.tampering import SOMEBODY, append_many, edit_a_body, edit_and_hash_again, without_triggers

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def trainmem(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the real command against the test's database, in a folder of its own."""
    monkeypatch.setenv("TRAINMEM_DATABASE_URL", database.url.render_as_string(hide_password=False))
    monkeypatch.setenv("TRAINMEM_CHECKPOINT_PATH", str(tmp_path / "notes.txt"))

    def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        start = [sys.executable, "-c", "from service.cli import main; main()", *arguments]
        done = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def vkey(database: Database) -> str:
    with database.reading() as session:
        return str(session.execute(sa.text("SELECT vkey FROM audit_key ORDER BY place")).scalars().first())


@on_both_databases
def test_sign_export_and_verify_elsewhere(trainmem: Run, database: Database, tmp_path: Path) -> None:
    append_many(database, 5)
    assert trainmem("audit", "checkpoint").stdout.startswith("trainmem/audit\n6\n")
    assert trainmem("audit", "checkpoint").stderr == "Nothing changed since the last checkpoint.\n"
    trainmem("audit", "export", "--output", "log.jsonl")
    told = trainmem("audit", "verify").stdout
    assert (
        "The database is whole: 7 entries" in told
        and "agrees with 1 checkpoint, the last of 6 entries; 1 are newer" in told
    )
    elsewhere = trainmem("audit", "verify", "log.jsonl", "--checkpoint", "notes.txt", "--vkey", vkey(database)).stdout
    assert "The export is whole: 6 entries" in elsewhere and "agrees with 1 checkpoint" in elsewhere


@on_both_databases
def test_the_first_bad_entry_is_named_and_the_status_says_so(trainmem: Run, database: Database) -> None:
    append_many(database, 9)
    trainmem("audit", "checkpoint")
    without_triggers(database)
    with database.writing() as session:
        edit_and_hash_again(session)
    told = trainmem("audit", "verify", status=1).stdout
    assert "FAULT: entry 5 was changed after it was signed" in told and "the first bad entry is 5" in told
    append_many(database, 1)
    assert "not signed" in trainmem("audit", "checkpoint", status=2).stderr
    assert "entry 5" in trainmem("audit", "acknowledge", "--reason", "known").stdout
    assert "known: entry 5" in trainmem("audit", "verify").stdout


def test_an_export_is_verified_without_a_database(
    trainmem: Run, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_many(database, 3)
    trainmem("audit", "checkpoint")
    trainmem("audit", "export", "--output", "log.jsonl")
    key = vkey(database)
    monkeypatch.setenv("TRAINMEM_DATABASE_URL", "postgresql://nobody@192.0.2.1/nothing")
    trainmem("audit", "verify", "log.jsonl", "--checkpoint", "notes.txt", "--vkey", key)
    path = tmp_path / "log.jsonl"
    path.write_text(path.read_text().replace("70B", "71B", 1))
    assert "first bad entry is 1" in trainmem("audit", "verify", "log.jsonl", status=1).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["log.jsonl", "--checkpoint", "notes.txt"], "needs --vkey"),
        (["log.jsonl", "--vkey", "trainmem+x+y"], "a key is written"),
        (["cut.jsonl"], "is no line of an export"),
        (["empty.jsonl"], "has no entries"),
        (["log.jsonl", "--checkpoint", "log.jsonl", "--vkey", "KEY"], "cannot be read"),
        (["missing.jsonl"], "No such file"),
    ],
)
def test_what_cannot_be_verified_is_told(
    trainmem: Run, database: Database, tmp_path: Path, arguments: list[str], said: str
) -> None:
    append_many(database, 3)
    trainmem("audit", "checkpoint")
    trainmem("audit", "export", "--output", "log.jsonl")
    text = (tmp_path / "log.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(text[: len(text) // 2])
    (tmp_path / "empty.jsonl").write_text("")
    given = [vkey(database) if word == "KEY" else word for word in arguments]
    assert said in trainmem("audit", "verify", *given, status=2).stderr


def test_an_export_that_broke_off_goes_on_behind_its_last_whole_line(
    trainmem: Run, database: Database, tmp_path: Path
) -> None:
    append_many(database, 6)
    trainmem("audit", "export", "--output", "log.jsonl")
    path = tmp_path / "log.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:40])
    assert "4 entries, 4 to 7" in trainmem("audit", "export", "--output", "log.jsonl", "--resume").stderr
    assert [json.loads(line)["seq"] for line in path.read_text().splitlines()] == [1, 2, 3, 4, 5, 6, 7]
    trainmem("audit", "verify", "log.jsonl")


def test_a_renewed_key_keeps_old_notes_verifiable(trainmem: Run, database: Database) -> None:
    append_many(database, 2)
    trainmem("audit", "checkpoint")
    first = vkey(database)
    second = trainmem("audit", "new-key").stdout.strip()
    trainmem("audit", "checkpoint")
    trainmem("audit", "export", "--output", "log.jsonl")
    for key in (first, second):
        told = trainmem("audit", "verify", "log.jsonl", "--checkpoint", "notes.txt", "--vkey", key).stdout
        assert "agrees with 2 checkpoints" in told


@on_both_databases
def test_what_a_person_typed_can_be_erased(trainmem: Run, database: Database) -> None:

    for subject in ("sz_1", "sz_2"):
        with database.writing() as session:
            append(session, action="sizing.created", actor=SOMEBODY, via="slack", subject=subject,
                   free_text={"command": f"70B for Ann, {subject}"})  # fmt: skip
    assert trainmem("audit", "erase", "sz_1").stdout == "1 text erased.\n"
    with database.reading() as session:
        assert session.execute(sa.text("SELECT text FROM audit_text")).scalars().all() == ["70B for Ann, sz_2"]
    assert trainmem("audit", "erase", "slack:T012/U345").stdout == "1 text erased.\n"
    assert trainmem("audit", "erase", "slack:T012/U345").stdout == "0 texts erased.\n"
    assert [entry["action"] for entry in entries(database)][-2:] == ["text.erased", "text.erased"]
    assert chain_fault(database) is None
    trainmem("audit", "verify")


def test_erased_text_is_not_left_in_the_file(trainmem: Run, database: Database) -> None:

    with database.writing() as session:
        append(session, action="sizing.created", actor=SOMEBODY, via="slack", subject="sz_1",
               free_text={"command": "the unmistakable secret"})  # fmt: skip
    trainmem("audit", "erase", "sz_1")
    database.dispose()
    with sa.create_engine(database.url).connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    path = Path(str(database.url.database))
    assert b"unmistakable" not in path.read_bytes()


def test_a_database_that_is_not_there_is_a_sentence(
    trainmem: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRAINMEM_DATABASE_URL", f"sqlite:///{tmp_path}/new.db")
    assert "trainmem migrate" in trainmem("audit", "verify", status=2).stderr


def test_damage_is_loud_for_the_keeper_too(trainmem: Run, database: Database) -> None:
    append_many(database, 6)
    without_triggers(database)
    with database.writing() as session:
        edit_a_body(session)
    assert "not what was written" in trainmem("audit", "checkpoint", status=2).stderr
