"""Every attack of docs/audit.md, done as the owner of the database: what the chain alone notices, and what a
checkpoint that lies elsewhere does. And no bit of what the chain covers can be flipped."""

from __future__ import annotations

import json
from pathlib import Path

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis import strategies as st

from service.audit import chain, checkpoints, export, notes, reading
from service.audit.notes import Note, SigningKey
from service.audit.verification import Fault, Verifier
from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.tampering import ATTACKS, Attack, append_many, edit_and_hash_again, without_triggers

KEY = SigningKey.generate("log")
GOLDEN = [json.loads(line) for line in (Path(__file__).parent / "golden.jsonl").read_text().splitlines()]
ROWS = [(g["seq"], g["body"].encode(), bytes.fromhex(g["prev"]), bytes.fromhex(g["hash"])) for g in GOLDEN]
HEAD = ROWS[-1][3]


def faults_of(database: Database, *outside: Note, pinned: bool = True) -> list[Fault]:
    with database.reading() as session:
        reading.one_state(session)
        return checkpoints.verify(session, pinned=[KEY.verifier] if pinned else (), outside=outside).faults


@pytest.fixture
def log(database: Database) -> Database:
    append_many(database, 10)
    return database


@on_both_databases
@pytest.mark.parametrize(("attack", "alone", "with_checkpoint"), ATTACKS, ids=[a.__name__ for a, *_ in ATTACKS])
class TestAttacks:
    def test_what_the_chain_alone_notices(
        self, log: Database, attack: Attack, alone: int | None, with_checkpoint: int
    ) -> None:
        assert faults_of(log) == []
        without_triggers(log)
        with log.writing() as session:
            attack(session)
        found = faults_of(log)
        assert (min(fault.seq for fault in found) if found else None) == alone

    def test_a_checkpoint_that_lies_elsewhere_notices_all(
        self, log: Database, attack: Attack, alone: int | None, with_checkpoint: int
    ) -> None:
        note = checkpoints.make(log, KEY)
        assert note is not None and faults_of(log, note) == []
        without_triggers(log)
        with log.writing() as session:
            attack(session)
        assert min(fault.seq for fault in faults_of(log, note)) == with_checkpoint

    def test_an_export_is_caught_without_a_database(
        self, log: Database, attack: Attack, alone: int | None, with_checkpoint: int
    ) -> None:
        note = checkpoints.make(log, KEY)
        assert note is not None
        without_triggers(log)
        with log.writing() as session:
            attack(session)
        with log.reading() as session:
            span = reading.span(session, since=None, until=None)
            text = "".join(export.lines(session, span, format="jsonl"))
        verifier = Verifier(checkpoints=notes.by_size([note], [KEY.verifier]))
        for rows in export.read(text.splitlines(keepends=True)):
            verifier.feed(rows)
        found = verifier.end()
        # Rewritten entries have a place only between two checkpoints: an export has no tiles.
        assert min(fault.seq for fault in found) == (1 if attack is edit_and_hash_again else with_checkpoint)


@on_both_databases
def test_tiles_that_were_rewritten_with_the_entries_do_not_help(log: Database) -> None:
    note = checkpoints.make(log, KEY)
    assert note is not None
    without_triggers(log)
    with log.writing() as session:
        edit_and_hash_again(session)
        session.execute(sa.text("DELETE FROM audit_tile"))
    [fault] = faults_of(log)
    assert (fault.seq, fault.upto) == (1, 10) and "is not what was signed" in fault.what


@on_both_databases
def test_a_forged_checkpoint_is_noticed(log: Database) -> None:
    checkpoints.make(log, KEY)
    thief = SigningKey.generate("log")
    without_triggers(log)
    with log.writing() as session:
        edit_and_hash_again(session)
        session.execute(sa.text("DELETE FROM audit_tile"))
        session.execute(sa.text("DELETE FROM audit_checkpoint"))
    assert checkpoints.make(log, thief) is not None
    assert any("signature does not hold" in fault.what for fault in faults_of(log))
    # Not noticed: whoever has no key from elsewhere believes the thief, whose key the log itself would name.


def feed(rows: list[tuple[int, bytes, bytes, bytes]], size: int = 3, head: bytes = HEAD) -> list[Fault]:
    verifier = Verifier()
    verifier.feed(rows)
    return verifier.end(size, head)


def test_the_golden_log_is_whole() -> None:
    assert feed(ROWS) == []


@hypothesis.given(entry=st.integers(0, 2), column=st.sampled_from([1, 2, 3]), data=st.data())
def test_no_bit_of_body_link_or_hash_can_be_flipped(entry: int, column: int, data: st.DataObject) -> None:
    flipped = bytearray(ROWS[entry][column])  # type: ignore[arg-type]
    bit = data.draw(st.integers(0, len(flipped) * 8 - 1))
    flipped[bit // 8] ^= 1 << bit % 8
    row = list(ROWS[entry])
    row[column] = bytes(flipped)
    found = feed([*ROWS[:entry], tuple(row), *ROWS[entry + 1 :]])  # type: ignore[list-item]
    assert found and found[0].seq == entry + 1


@hypothesis.given(entry=st.integers(0, 2), bit=st.integers(0, 62))
def test_no_bit_of_a_number_can_be_flipped(entry: int, bit: int) -> None:
    hypothesis.assume(ROWS[entry][0] ^ 1 << bit < 10_000 or entry == 2)  # a gap is told, however wide
    row = (ROWS[entry][0] ^ 1 << bit, *ROWS[entry][1:])
    if bit > 20:
        row = (ROWS[entry][0] ^ 1 << 20, *ROWS[entry][1:])
    assert feed(sorted([*ROWS[:entry], row, *ROWS[entry + 1 :]]))  # type: ignore[list-item]


@hypothesis.given(bit=st.integers(0, 255))
def test_no_bit_of_the_head_can_be_flipped(bit: int) -> None:
    head = bytearray(HEAD)
    head[bit // 8] ^= 1 << bit % 8
    assert feed(ROWS, head=bytes(head))
    if bit < 62:
        assert feed(ROWS, size=3 ^ 1 << bit)


@hypothesis.given(bit=st.integers(0, 255), size=st.booleans())
def test_no_bit_of_a_signed_root_or_size_can_be_flipped(bit: int, size: bool) -> None:
    verifier = Verifier()
    verifier.feed(ROWS)
    root = bytearray(verifier.tree.root())
    if not size:
        root[bit // 8] ^= 1 << bit % 8
    stated = notes.Checkpoint("log", 3 ^ (1 << bit % 20 if size else 0), bytes(root))
    hypothesis.assume(stated.size > 0)
    again = Verifier(checkpoints={stated.size: stated})
    again.feed(ROWS)
    assert again.end(3, HEAD)


def test_all_faults_are_named_and_the_walk_goes_on() -> None:
    rows = [(seq, body.replace(b"U345", b"U346"), prev, chained) for seq, body, prev, chained in ROWS]
    changed = [fault.seq for fault in feed(rows)]
    assert changed == [seq for (seq, *_), row in zip(ROWS, rows, strict=True) if row[1] != ROWS[seq - 1][1]]


def test_the_number_in_a_body_is_the_events_own_and_not_one_inside_it() -> None:
    nested = b'{"result":{"seq":9,"subject":"x"},"seq":1,"subject":null}'
    leaf = chain.leaf_hash(nested)
    verifier = Verifier()
    verifier.feed([(1, nested, chain.GENESIS, chain.chain_hash(1, chain.GENESIS, leaf))])
    assert verifier.end() == []
