"""Reading the log in order, in bounded memory, as the bytes that were hashed."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit.models import AuditEntry, AuditHead
from service.audit.service import LOG
from service.audit.verification import Row

BATCH = 1024


class End(NamedTuple):
    """Where the log says it ends."""

    size: int
    head: bytes
    stopped: bool


def end(session: Session) -> End:
    """The end of the log; of size 0 if even the head is gone."""
    row = session.execute(
        sa.select(AuditHead.size, AuditHead.head, AuditHead.stopped).where(AuditHead.log == LOG)
    ).one_or_none()
    return End(*row) if row else End(0, b"", False)


def one_state(session: Session) -> None:
    """Let every statement of a new session see the log as it is now, also on PostgreSQL."""
    if not _sqlite(session):
        session.rollback()
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def rows(session: Session, *, after: int = 0, upto: int | None = None) -> Iterator[Sequence[Row]]:
    """Batches of (seq, body, prev, hash) in order of seq, those numbered over `after` and at most `upto`."""
    body = sa.cast(AuditEntry.body, sa.LargeBinary) if _sqlite(session) else AuditEntry.body
    query = sa.select(AuditEntry.seq, body, AuditEntry.prev, AuditEntry.hash).order_by(AuditEntry.seq)
    if after:
        query = query.where(AuditEntry.seq > after)
    if upto is not None:
        query = query.where(AuditEntry.seq <= upto)
    found = session.execute(query.execution_options(yield_per=BATCH))
    if _sqlite(session):  # as bytes, since a body that was tampered with need not be UTF-8
        for batch in found.partitions():
            yield [tuple(row) for row in batch]  # type: ignore[misc]
    else:
        for batch in found.partitions():
            yield [(seq, text.encode(), prev, chained) for seq, text, prev, chained in batch]  # type: ignore[attr-defined]


class Span(NamedTuple):
    """Entries numbered over `after` up to `upto`."""

    after: int
    upto: int


def span(session: Session, *, since: datetime.datetime | None, until: datetime.datetime | None, after: int = 0) -> Span:
    """Which entries lie between two moments: from the first at or after `since` to the last before `until`.

    Numbers without a gap, even if a clock once went backwards, so that what is exported can be verified.
    """
    at, number = AuditEntry.occurred_at, AuditEntry.seq
    first, last = 1, end(session).size
    if since is not None:
        earliest = sa.select(number).where(at >= since).order_by(at, number).limit(1)
        first = session.execute(earliest).scalar() or last + 1
    if until is not None:
        latest = sa.select(number).where(at < until).order_by(at.desc(), number.desc()).limit(1)
        last = session.execute(latest).scalar() or 0
    return Span(max(first - 1, after), last)


def _sqlite(session: Session) -> bool:
    return session.connection().dialect.name == "sqlite"
