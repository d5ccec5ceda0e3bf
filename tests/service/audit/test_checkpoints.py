"""Checkpoints: signed only if everything is as it was, harmless twice at once, published, provable, keys renewable."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.audit import checkpoints, faults, keeper, keys, notes, publication, reading
from service.audit.checkpoints import NotSigned
from service.audit.merkle import consistency_proof, inclusion_proof, verify_consistency, verify_inclusion
from service.audit.models import AuditCheckpoint, AuditTile
from service.audit.notes import Checkpoint, SigningKey
from service.database import Database
from service.door import Caller
from service.errors import SettingError
from service.settings import Settings
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries
from tests.support.tampering import (
    append_many,
    cut_the_tail_and_fix_the_head,
    edit_a_body,
    restore_a_backup,
    without_triggers,
)

KEY = SigningKey.generate("log")
OPERATOR = Caller("operator", "ann")


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        database_url=database_url,
        audit_key=str(tmp_path / "secret" / "audit.key"),
        checkpoint_path=str(tmp_path / "published" / "notes.txt"),
    )


def keep(database: Database, settings: Settings) -> keeper.Kept:
    return keeper.keep(database, settings, by=OPERATOR)


@on_both_databases
def test_proofs_from_tiles_hold_against_the_signed_roots(database: Database) -> None:
    sizes = []
    for count in (3, 254, 300, 1):
        append_many(database, count, start=sum(sizes))
        note = checkpoints.make(database, KEY)
        assert note is not None and note.signed_by([KEY.verifier])
        sizes.append(count)
    totals = [3, 257, 557, 558]
    with database.reading() as session:
        roots = dict(session.execute(sa.select(AuditCheckpoint.size, AuditCheckpoint.root)).all())  # type: ignore[arg-type]
        subtree = checkpoints.subtrees(session)
        assert sorted(roots) == totals
        for size in totals:
            for seq in {1, 2, 3, 256, 257, size} & set(range(1, size + 1)):
                proof = inclusion_proof(seq - 1, size, subtree)
                assert verify_inclusion(seq - 1, size, subtree(0, seq - 1), proof, roots[size])
            for first in totals[: totals.index(size) + 1]:
                proof = consistency_proof(first, size, subtree)
                assert verify_consistency(first, size, proof, roots[first], roots[size])
        full = session.execute(
            sa.select(sa.func.count()).select_from(AuditTile).where(AuditTile.level == 0, AuditTile.width == 256)
        ).scalar()
    assert full == 2


@on_both_databases
def test_nothing_is_signed_when_nothing_changed_or_nothing_is_there(database: Database) -> None:
    assert checkpoints.make(database, KEY) is None
    append_many(database, 2)
    assert checkpoints.make(database, KEY) is not None
    assert checkpoints.make(database, KEY) is None


@on_both_databases
def test_two_at_once_sign_the_same(database: Database) -> None:
    append_many(database, 300)
    barrier, made = threading.Barrier(2), list[object]()

    def work() -> None:
        barrier.wait()
        made.append(checkpoints.make(database, KEY))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(note) for note in made if note is not None}) == 1
    with database.reading() as session:
        assert session.execute(sa.select(sa.func.count()).select_from(AuditCheckpoint)).scalar() == 1


@on_both_databases
def test_a_changed_log_is_not_signed_and_writing_stops(database: Database) -> None:
    append_many(database, 10)
    without_triggers(database)
    with database.writing() as session:
        edit_a_body(session)
    with pytest.raises(NotSigned, match="entry 5 was changed") as refused:
        checkpoints.make(database, KEY)
    assert [fault.seq for fault in refused.value.faults] == [5]
    with database.reading() as session:
        assert reading.end(session).stopped
        assert checkpoints.latest(session) is None


def test_the_key_is_made_once_and_never_lies_in_the_database(database: Database, settings: Settings) -> None:
    append_many(database, 1)
    kept = keep(database, settings)
    path = Path(settings.audit_key)
    assert path.stat().st_mode & 0o777 == 0o600
    secret = path.read_text()
    assert kept.note is not None and kept.note.text.startswith("trainmem/audit\n2\n")  # the key is an entry
    assert entries(database)[-1]["action"] == "audit.key"
    assert secret.strip().rpartition("+")[2].encode() not in Path(str(database.url.database)).read_bytes()
    assert keep(database, settings).note is None


def test_a_key_that_is_gone_is_not_replaced_in_silence(database: Database, settings: Settings) -> None:
    keep(database, settings)
    Path(settings.audit_key).unlink()
    with pytest.raises(SettingError, match="is gone"):
        keep(database, settings)
    Path(settings.audit_key).write_text(str(SigningKey.generate("trainmem/audit")))
    with pytest.raises(SettingError, match="the log's last key is"):
        keep(database, settings)


def test_the_old_key_signs_the_new_one_and_old_notes_stay_verifiable(database: Database, settings: Settings) -> None:
    keep(database, settings)
    old = keys.read(Path(settings.audit_key)).verifier
    new = keys.renew(database, path=Path(settings.audit_key), name="trainmem/audit", by=OPERATOR)
    assert keep(database, settings).note is not None
    published = publication.published(Path(settings.checkpoint_path))
    assert [notes.is_introduction(note) for note in published] == [False, True, False]
    for pinned in (old, new.verifier):
        trusting = notes.trusted([pinned], published)
        assert sorted(notes.by_size(published, trusting)) == [1, 2]
    assert [entry["action"] for entry in entries(database)] == ["audit.key", "audit.key"]
    assert chain_fault(database) is None


def test_a_lost_key_can_be_replaced_only_when_told(database: Database, settings: Settings) -> None:
    keep(database, settings)
    path = Path(settings.audit_key)
    with pytest.raises(SettingError, match="not lost"):
        keys.renew(database, path=path, name="trainmem/audit", by=OPERATOR, lost=True)
    path.unlink()
    Path(settings.checkpoint_path).unlink()
    keys.renew(database, path=path, name="trainmem/audit", by=OPERATOR, lost=True)
    assert keep(database, settings).note is not None


class TestPublishing:
    def test_notes_are_appended_to_a_file_and_none_is_lost_or_doubled(
        self, database: Database, settings: Settings
    ) -> None:
        for _ in range(3):
            append_many(database, 1)
            keep(database, settings)
            keep(database, settings)
        published = publication.published(Path(settings.checkpoint_path))
        assert [Checkpoint.parse(note.text).size for note in published] == [2, 3, 4]

    def test_a_directory_gets_a_file_for_each(self, database: Database, settings: Settings, tmp_path: Path) -> None:
        settings = Settings(**{**vars_of(settings), "checkpoint_path": str(tmp_path)})
        keep(database, settings)
        append_many(database, 1)
        keep(database, settings)
        assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["000000000001.txt", "000000000002.txt"]
        assert len(publication.published(tmp_path)) == 2

    def test_what_was_published_must_still_hold(self, database: Database, settings: Settings) -> None:
        keep(database, settings)
        append_many(database, 9)
        keep(database, settings)
        without_triggers(database)
        with database.writing() as session:
            restore_a_backup(session)
        with pytest.raises(NotSigned, match="entry 8 and all to 10 are missing"):
            keep(database, settings)

    def test_a_file_that_is_something_else_is_refused(self, database: Database, settings: Settings) -> None:
        path = Path(settings.checkpoint_path)
        path.parent.mkdir()
        path.write_text("shopping list\n")
        with pytest.raises(SettingError, match="The signed notes in"):
            keep(database, settings)

    def test_a_channel_gets_each_checkpoint_once_and_again_if_it_failed(
        self, database: Database, settings: Settings, webhook: Webhook
    ) -> None:
        settings = Settings(**{**vars_of(settings), "checkpoint_webhook_url": webhook.url})
        webhook.status = 500
        assert len(keep(database, settings).failed) == 1
        webhook.status = 200
        assert keep(database, settings).failed == []
        assert keep(database, settings).failed == []
        assert len(webhook.got) == 2 and b"trainmem/audit" in webhook.got[1]


@on_both_databases
def test_acknowledged_damage_is_known_and_numbers_are_not_given_out_again(database: Database) -> None:
    append_many(database, 10)
    checkpoints.make(database, KEY)
    without_triggers(database)
    with database.writing() as session:
        cut_the_tail_and_fix_the_head(session)
    with pytest.raises(NotSigned):
        append_many(database, 1)
        checkpoints.make(database, KEY)
    found = faults.acknowledge(database, by=OPERATOR, reason="restored from the wrong backup")
    assert found and faults.acknowledge(database, by=OPERATOR, reason="again") == []
    append_many(database, 3)
    note = checkpoints.make(database, KEY)
    assert note is not None
    numbers = [entry["seq"] for entry in entries(database)]
    assert numbers[-4:] == [11, 12, 13, 14] and entries(database)[-4]["action"] == "audit.acknowledged"
    assert "wrong backup" not in str(entries(database)[-4])
    with database.reading() as session:
        old, new = checkpoints.at(session, 10), checkpoints.at(session, 14)
        assert old is not None and new is not None
        proof = consistency_proof(10, 14, checkpoints.subtrees(session))
    assert verify_consistency(10, 14, proof, old.root, new.root)


class Webhook:
    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.got.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/T/B/secret"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    """Stands where Slack's incoming webhook would."""
    hook = Webhook()
    thread = threading.Thread(target=hook.server.serve_forever)
    thread.start()
    yield hook
    hook.server.shutdown()
    thread.join()
    hook.server.server_close()


def vars_of(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in ("database_url", "audit_key", "checkpoint_path")}
