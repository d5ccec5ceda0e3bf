"""Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07): a repeated request gets the recorded sizing again.

The key is inserted in the transaction of the sizing, under a unique constraint: whoever comes second waits for the
first and then finds the key. Keys belong to one caller and are kept for a day.
"""

from __future__ import annotations

import datetime
import re

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.errors import Conflict, FieldError, KeyReused, MalformedBody
from service.sizings.models import IdempotencyKey

KEPT = datetime.timedelta(hours=24)
_WRITTEN = re.compile(r"[\x21-\x7e]{1,200}")
_LOCK_NOT_AVAILABLE = "55P03"


def checked_key(key: str | None) -> str | None:
    """The header's value. Raises MalformedBody unless it is 1 to 200 printable ASCII characters without spaces."""
    if key is not None and not _WRITTEN.fullmatch(key):
        allowed = "1 to 200 printable ASCII characters, no spaces"
        raise MalformedBody(
            f"The header Idempotency-Key has {allowed}.",
            errors=[FieldError("", "the header Idempotency-Key cannot be read", key[:100], allowed)],
        )
    return key


def recorded_under(session: Session, *, caller: str, key: str, fingerprint: str) -> str | None:
    """The id of the sizing that this key already gave. Raises KeyReused if it was another question."""
    found = session.execute(
        sa.select(IdempotencyKey.fingerprint, IdempotencyKey.sizing_id).where(
            IdempotencyKey.caller == caller, IdempotencyKey.key == key, IdempotencyKey.created_at > _oldest()
        )
    ).one_or_none()
    if found is None:
        return None
    if found.fingerprint != fingerprint:
        raise KeyReused("This Idempotency-Key was sent before with another body; use a new key for a new question.")
    return str(found.sizing_id)


def claim(session: Session, *, caller: str, key: str, fingerprint: str, sizing_id: str) -> bool:
    """Bind the key to a sizing that this transaction records. False if it is bound already.

    Raises Conflict if another request with this key is still being recorded and does not end in time.
    """
    values = {
        "caller": caller,
        "key": key,
        "fingerprint": fingerprint,
        "sizing_id": sizing_id,
        "created_at": datetime.datetime.now(datetime.UTC),
    }
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    insert = dialect.insert(IdempotencyKey.__table__).values(values).on_conflict_do_nothing()
    try:
        if session.execute(insert.returning(IdempotencyKey.key)).one_or_none():
            return True
        expired = sa.delete(IdempotencyKey.__table__).where(
            IdempotencyKey.caller == caller, IdempotencyKey.key == key, IdempotencyKey.created_at <= _oldest()
        )
        session.execute(expired)
        return session.execute(insert.returning(IdempotencyKey.key)).one_or_none() is not None
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        raise Conflict(
            "A request with this Idempotency-Key is still being recorded.", headers={"Retry-After": "1"}
        ) from error


def forget_expired(session: Session) -> None:
    """Delete the keys whose day is over."""
    session.execute(sa.delete(IdempotencyKey.__table__).where(IdempotencyKey.created_at <= _oldest()))


def _oldest() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) - KEPT
