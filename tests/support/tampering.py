"""Changing a log as whoever owns the database could: the triggers are gone first."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import chain
from service.audit.service import append
from service.database import Database

SOMEBODY = SimpleNamespace(kind="slack", id="U345", team="T012")


def append_many(database: Database, count: int, start: int = 1) -> None:
    """Entries as the service writes them."""
    with database.writing() as session:
        for number in range(start, start + count):
            append(session, action="sizing.created", actor=SOMEBODY, via="slack", subject=f"sz_{number}",
                   request={"model": "70B", "number": number})  # fmt: skip


def without_triggers(database: Database) -> None:
    """What the owner of a database can do."""
    with database.writing() as session:
        if session.connection().dialect.name == "postgresql":
            for table in ("entry", "head", "tile", "checkpoint", "publication"):
                session.execute(sa.text(f"ALTER TABLE audit_{table} DISABLE TRIGGER ALL"))
            return
        triggers = session.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in triggers:
            session.execute(sa.text(f'DROP TRIGGER "{name}"'))


def edit(session: Session, seq: int, old: str, new: str) -> None:
    body = _body(session, seq)
    assert old in body
    _set(session, seq, body=body.replace(old, new))


def edit_a_body(session: Session) -> None:
    edit(session, 5, "70B", "7B")


def delete_in_the_middle(session: Session) -> None:
    session.execute(sa.text("DELETE FROM audit_entry WHERE seq = 5"))


def swap_two(session: Session) -> None:
    five, six = _body(session, 5), _body(session, 6)
    _set(session, 5, body=six)
    _set(session, 6, body=five)


def cut_the_tail(session: Session) -> None:
    session.execute(sa.text("DELETE FROM audit_entry WHERE seq >= 8"))


def cut_the_tail_and_fix_the_head(session: Session) -> None:
    cut_the_tail(session)
    session.execute(sa.text("UPDATE audit_head SET size = 7, head = (SELECT hash FROM audit_entry WHERE seq = 7)"))


def edit_and_hash_again(session: Session) -> None:
    edit_a_body(session)
    previous = session.execute(sa.text("SELECT hash FROM audit_entry WHERE seq = 4")).scalar_one()
    links = {}
    for seq, body in session.execute(sa.text("SELECT seq, body FROM audit_entry WHERE seq >= 5 ORDER BY seq")).all():
        again = chain.chain_hash(seq, bytes(previous), chain.leaf_hash(body.encode()))
        links[seq] = (previous, again)
        previous = again
    for seq, (before, again) in sorted(links.items(), reverse=True):
        _set(session, seq, prev=before, hash=again)
    session.execute(sa.text("UPDATE audit_head SET head = :head"), {"head": previous})


def restore_a_backup(session: Session) -> None:
    """The log as it was three entries ago, and the checkpoint with it: what a backup from then has."""
    cut_the_tail_and_fix_the_head(session)
    for table in ("audit_publication", "audit_checkpoint", "audit_tile"):
        session.execute(sa.text(f"DELETE FROM {table}"))


Attack = Callable[[Session], None]

#: attack, the first bad entry without a checkpoint (None: not noticed), and with one
ATTACKS: list[tuple[Attack, int | None, int]] = [
    (edit_a_body, 5, 5),
    (delete_in_the_middle, 5, 5),
    (swap_two, 5, 5),
    (cut_the_tail, 8, 8),
    (cut_the_tail_and_fix_the_head, None, 8),
    (edit_and_hash_again, None, 5),
    (restore_a_backup, None, 8),
]


def _body(session: Session, seq: int) -> str:
    return str(session.execute(sa.text("SELECT body FROM audit_entry WHERE seq = :seq"), {"seq": seq}).scalar_one())


def _set(session: Session, seq: int, **columns: object) -> None:
    told = ", ".join(f"{name} = :{name}" for name in columns)
    session.execute(sa.text(f"UPDATE audit_entry SET {told} WHERE seq = :seq"), {**columns, "seq": seq})
