"""Appending to the audit, as the last step of the transaction that has the effect."""

from __future__ import annotations

import datetime
import hashlib
import secrets
import uuid
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import chain
from service.audit.models import HASH_BYTES, AuditEntry, AuditHead, AuditText
from service.errors import Unavailable
from service.ids import uuid7

LOG = "main"

_HEAD = AuditHead.__table__
_HERE = sa.and_(_HEAD.c.log == LOG, ~_HEAD.c.stopped)
_TAKE = sa.update(_HEAD).where(_HERE).values(size=_HEAD.c.size + 1).returning(_HEAD.c.size, _HEAD.c.head)
_INSERT = sa.insert(AuditEntry.__table__)
_MOVE = sa.update(_HEAD).where(_HERE).values(head=sa.bindparam("new_head"))

Outcome = Literal["ok", "refused"]


class Actor(Protocol):
    """Who did it: ids, no names. `team` is the workspace or group that the id belongs to.

    May also have `token`, the id of the API token that vouches for it, and `channel`, where it asked.
    """

    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def team(self) -> str | None: ...


class Stopped(Unavailable):
    """The log has a fault that nobody acknowledged."""

    def __init__(self) -> None:
        super().__init__(
            "The audit is not what was written, so nothing is recorded until an administrator has looked at it;"
            " /readyz says what was found. Reading goes on.",
            retry_after_s=60,
        )


class NotWritten(Unavailable):
    """The database took no entry."""

    def __init__(self) -> None:
        super().__init__("The audit entry cannot be written, so nothing was recorded. Try again in a moment.")


class Receipt(NamedTuple):
    """What a caller keeps to have the entry proven later: its number, and its leaf hash as lower-case hex."""

    seq: int
    leaf: str


def append(
    session: Session,
    *,
    action: str,
    actor: Actor,
    via: str,
    subject: str | None,
    outcome: Outcome = "ok",
    request: Mapping[str, Any] | None = None,
    result: Mapping[str, Any] | None = None,
    free_text: Mapping[str, str] | None = None,
    engine: str | None = None,
    catalog: str | None = None,
    request_id: str | None = None,
    event_id: uuid.UUID | None = None,
    at: datetime.datetime | None = None,
) -> Receipt:
    """Append one event and return its receipt. Call it last before the commit: from here on other writers wait.

    `request` and `result` are JSON objects of text, booleans, null, finite numbers and integers within ±2^53.
    Each of `free_text` goes to a table of its own, where it may be erased; the entry has `<name>_sha256` in `request`.
    Raises ValueError if something has no canonical form, Unavailable if the entry cannot be written. Nothing is written
    unless the caller's transaction commits.
    """
    event_id = event_id or uuid7()
    at = at or datetime.datetime.now(datetime.UTC)
    salted = {name: (secrets.token_bytes(HASH_BYTES), text) for name, text in (free_text or {}).items()}
    digests = {f"{name}_sha256": text_digest(salt, text) for name, (salt, text) in salted.items()}
    draft = chain.Draft(
        {
            "v": 1,
            "log": LOG,
            "id": str(event_id),
            "at": timestamp(at),
            "actor": _actor(actor),
            "via": via,
            "action": action,
            "subject": subject,
            "outcome": outcome,
            "request": None if request is None and not digests else {**(request or {}), **digests},
            "result": result,
            "engine": engine,
            "catalog": catalog,
            "request_id": request_id,
        }
    )
    if salted:
        rows = [{"event_id": str(event_id), "name": n, "salt": s, "text": t} for n, (s, t) in salted.items()]
        session.execute(sa.insert(AuditText.__table__), rows)
    search_copies = {"occurred_at": at, "actor": actor_text(actor), "action": action, "subject": subject}
    try:
        return _take_next_place(session, draft, event_id, search_copies)
    except sa.exc.DBAPIError as error:
        raise NotWritten from error


def _take_next_place(
    session: Session, draft: chain.Draft, event_id: uuid.UUID, search_copies: Mapping[str, Any]
) -> Receipt:
    # The first statement takes the head's row lock (PostgreSQL) or finds the write lock taken (SQLite). Whoever waits
    # for it then sees the committed new end: no fork, no retry, and a rolled-back transaction gives its number back.
    taken = session.execute(_TAKE).one_or_none()
    if taken is None:
        raise Stopped
    seq, previous = taken
    body = draft.body(seq)
    leaf = chain.leaf_hash(body)
    head = chain.chain_hash(seq, previous, leaf)
    row = {"seq": seq, "event_id": str(event_id), "body": body.decode(), "prev": previous, "hash": head}
    session.execute(_INSERT, {**row, **search_copies})
    session.execute(_MOVE, {"new_head": head})
    return Receipt(seq, leaf.hex())


def _actor(actor: Actor) -> dict[str, Any]:
    """The actor as entries show it; what is not known of it is left out, but for the three that always stand."""
    more = {name: value for name in ("channel", "token") if (value := getattr(actor, name, None)) is not None}
    return {"kind": actor.kind, "id": actor.id, "team": actor.team, **more}


def text_digest(salt: bytes, text: str) -> str:
    """What stands in an entry for free text: SHA-256(salt ‖ UTF-8 text), lower-case hex."""
    return hashlib.sha256(salt + text.encode()).hexdigest()


def timestamp(at: datetime.datetime) -> str:
    """UTC with microseconds and Z, as entries and answers show it."""
    return at.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def actor_text(actor: Actor) -> str:
    """`slack:T012/U345`: the form of the header Trainmem-On-Behalf-Of and of the search column."""
    return f"{actor.kind}:{actor.team}/{actor.id}" if actor.team else f"{actor.kind}:{actor.id}"


class Evidence(NamedTuple):
    """What the audit holds of one event: the receipt, and the free text that has not been erased."""

    receipt: Receipt
    texts: dict[str, str]


def evidence(session: Session, event_id: str) -> Evidence:
    """The receipt and texts of an event that was appended. Raises NoResultFound if it was not."""
    found = session.execute(
        sa.select(AuditEntry.seq, AuditEntry.body, AuditText.name, AuditText.text)
        .outerjoin(AuditText, AuditText.event_id == AuditEntry.event_id)
        .where(AuditEntry.event_id == event_id)
    ).all()
    if not found:
        raise sa.exc.NoResultFound(f"no audit entry has the event id {event_id}")
    leaf = chain.leaf_hash(found[0].body.encode()).hex()
    return Evidence(Receipt(found[0].seq, leaf), {row.name: row.text for row in found if row.name is not None})


def places(action: str, *, after: int) -> sa.Subquery:
    """(seq, event_id) of the entries with this action that are numbered over `after`, to be joined and ordered by seq.

    An entry is seen only after all with smaller numbers, so whoever goes on behind the last one misses none.
    """
    query = sa.select(AuditEntry.seq, AuditEntry.event_id).where(AuditEntry.action == action, AuditEntry.seq > after)
    return query.subquery()


def place_before(session: Session, since: datetime.datetime | None) -> int:
    """The number before the first entry at or after a moment; 0 for none, the last one if nothing came since."""
    if since is None:
        return 0
    first = sa.select(AuditEntry.seq).where(AuditEntry.occurred_at >= since)
    found = session.execute(first.order_by(AuditEntry.occurred_at, AuditEntry.seq).limit(1)).scalar()
    if found is not None:
        return found - 1
    return session.execute(sa.select(AuditHead.size).where(AuditHead.log == LOG)).scalar() or 0
