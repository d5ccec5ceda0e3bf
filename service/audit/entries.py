"""Finding entries: newest first, page after page, each page as cheap as the first; and one entry with its texts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service import cursors
from service.audit import chain, reading
from service.audit.models import AuditEntry, AuditText
from service.errors import NotFound

FILTERS = ("actor", "action", "subject")
#: The newest number that a database keeps.
LARGEST_SEQ = 2**63 - 1


def search(
    session: Session,
    *,
    filters: Mapping[str, str],
    since: datetime.datetime | None = None,
    until: datetime.datetime | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> tuple[list[str], str | None]:
    """A page of entries as JSON text, newest first, and the cursor of the next page. Raises InvalidInput for a cursor.

    The place in the list is the entry's number, which has an index behind every filter.
    """
    query = sa.select(AuditEntry.seq, AuditEntry.body, AuditEntry.prev, AuditEntry.hash)
    for name in FILTERS:
        if name in filters:
            query = query.where(getattr(AuditEntry, name) == filters[name])
    if since is not None or until is not None:
        span = reading.span(session, since=since, until=until)
        query = query.where(AuditEntry.seq > span.after, AuditEntry.seq <= span.upto)
    if cursor is not None:
        query = query.where(AuditEntry.seq < _place(cursor))
    rows = session.execute(query.order_by(AuditEntry.seq.desc()).limit(limit + 1)).all()
    following = cursors.encode(rows[limit - 1].seq) if len(rows) > limit else None
    return [_json(*row) for row in rows[:limit]], following


def read(session: Session, seq: int) -> str:
    """One entry as JSON text, with the free text that was not erased and its salt. Raises NotFound."""
    row = session.execute(sa.select(AuditEntry).where(AuditEntry.seq == seq)).scalar_one_or_none()
    if row is None:
        raise NotFound(f"The log has no entry {seq:,}.")
    texts = session.execute(sa.select(AuditText).where(AuditText.event_id == row.event_id)).scalars()
    kept = {text.name: {"text": text.text, "salt": text.salt.hex()} for text in texts}
    told = json.dumps(kept, ensure_ascii=False)
    return f'{_json(row.seq, row.body, row.prev, row.hash)[:-1]},"texts":{told}}}'


def leaf(session: Session, seq: int) -> bytes:
    """The leaf hash of an entry as it stands. Raises NotFound."""
    body = session.execute(sa.select(AuditEntry.body).where(AuditEntry.seq == seq)).scalar()
    if body is None:
        raise NotFound(f"The log has no entry {seq:,}.")
    return chain.leaf_hash(body.encode())


def _json(seq: int, body: str, prev: bytes, chained: bytes) -> str:
    """The body stands in it byte for byte: who cuts it out can hash it."""
    try:
        json.loads(body)
    except (ValueError, RecursionError):  # tampered with
        body = json.dumps({"unreadable": body})
    told = {"seq": seq, "leaf": chain.leaf_hash(body.encode()).hex(), "prev": prev.hex(), "hash": chained.hex()}
    return f'{json.dumps(told)[:-1]},"event":{body}}}'


def _place(cursor: str) -> int:
    (seq,) = cursors.decode(cursor, int)
    if not 0 < seq <= LARGEST_SEQ:
        raise cursors.unreadable(cursor)
    return int(seq)
