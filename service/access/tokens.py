"""Giving out API tokens, taking them back, and finding the one that a request carries.

A token is `tmk_` and 256 random bits, so that a scanner for leaked secrets knows it; what is kept is its SHA-256, which
for that much randomness needs neither salt nor a slow hash.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.access.models import ApiToken, ApiTokenRevocation
from service.audit import service as audit
from service.engine.errors import FieldError, InvalidInput, nearest
from service.errors import NotFound
from service.ids import public_id, uuid7
from service.scopes import SCOPES

WRITTEN = re.compile(r"tmk_[A-Za-z0-9_-]{43}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAMES = "1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; the secret itself is not."""

    id: str
    name: str
    team: str | None
    scopes: frozenset[str]
    for_others: bool
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    revoked_at: datetime.datetime | None = None

    def state(self, now: datetime.datetime) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"


def create(
    session: Session,
    *,
    name: str,
    scopes: Collection[str],
    by: audit.Actor,
    team: str | None = None,
    for_others: bool = False,
    valid_for: datetime.timedelta | None = None,
) -> tuple[Token, str]:
    """Give out a token: what is known of it, and the secret, which is shown this once. Audited.

    Raises InvalidInput for a name, a team or a scope that cannot be.
    """
    _check(name, team, scopes)
    number, event_id, now = uuid7(), uuid7(), datetime.datetime.now(datetime.UTC)
    secret = f"tmk_{secrets.token_urlsafe(32)}"
    token = Token(
        id=public_id("tok", number),
        name=name,
        team=team,
        scopes=frozenset(scopes),
        for_others=for_others,
        created_at=now,
        expires_at=None if valid_for is None else now + valid_for,
    )
    told = {
        "name": name,
        "team": team,
        "scopes": _ordered(token.scopes),
        "for_others": for_others,
        "expires_at": None if token.expires_at is None else audit.timestamp(token.expires_at),
    }
    session.execute(
        sa.insert(ApiToken.__table__).values(
            id=token.id,
            event_id=str(event_id),
            name=name,
            team=team,
            digest=digest(secret),
            scopes=" ".join(_ordered(token.scopes)),
            for_others=for_others,
            created_at=now,
            expires_at=token.expires_at,
        )
    )
    audit.append(
        session,
        action="token.created",
        actor=by,
        via="cli",
        subject=token.id,
        request=told,
        event_id=event_id,
        at=now,
    )
    return token, secret


def revoke(session: Session, *, which: str, by: audit.Actor) -> list[Token]:
    """End the token with this id, or every one with this name; gives those that this call ended. Audited, each.

    Raises NotFound if there is none.
    """
    found = _read(session, sa.or_(ApiToken.id == which, ApiToken.name == which))
    if not found:
        near = nearest(which, [name for (name,) in session.execute(sa.select(ApiToken.name).distinct())])
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise NotFound(f"No token has the id or name {which[:64]}.{hint}")
    now = datetime.datetime.now(datetime.UTC)
    ended = [token for token in found if token.revoked_at is None]
    for token in ended:
        event_id = uuid7()
        values = {"token_id": token.id, "event_id": str(event_id), "revoked_at": now}
        session.execute(sa.insert(ApiTokenRevocation.__table__).values(values))
        audit.append(
            session,
            action="token.revoked",
            actor=by,
            via="cli",
            subject=token.id,
            request={"name": token.name},
            event_id=event_id,
            at=now,
        )
    return ended


def every(session: Session) -> list[Token]:
    """All tokens that were ever given out, oldest first."""
    return _read(session)


def find(session: Session, secret: str) -> Token | None:
    """The token that has this secret, whatever its state."""
    found = _read(session, ApiToken.digest == digest(secret))
    return found[0] if found else None


def digest(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def _read(session: Session, *wanted: sa.ColumnElement[bool]) -> list[Token]:
    rows = session.execute(
        sa.select(ApiToken, ApiTokenRevocation.revoked_at)
        .outerjoin(ApiTokenRevocation, ApiTokenRevocation.token_id == ApiToken.id)
        .where(*wanted)
        .order_by(ApiToken.created_at, ApiToken.id)
    )
    return [
        Token(
            id=row.id,
            name=row.name,
            team=row.team,
            scopes=frozenset(row.scopes.split()),
            for_others=row.for_others,
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=revoked_at,
        )
        for row, revoked_at in rows
    ]


def _ordered(scopes: Collection[str]) -> list[str]:
    return [scope for scope in SCOPES if scope in scopes]


def _check(name: str, team: str | None, scopes: Collection[str]) -> None:
    wrong = [
        FieldError("/scope", f"{scope} is not a scope", scope, ", ".join(SCOPES), nearest(scope, SCOPES))
        for scope in scopes
        if scope not in SCOPES
    ]
    if not scopes:
        wrong.append(FieldError("/scope", "a token needs a scope", None, ", ".join(SCOPES)))
    for pointer, text in (("/name", name), ("/team", team)):
        if text is not None and not _NAME.fullmatch(text):
            wrong.append(FieldError(pointer, f"{pointer[1:]} cannot be {text[:80]!r}", text[:80], NAMES))
    if wrong:
        raise InvalidInput(wrong)
