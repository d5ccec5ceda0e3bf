"""API tokens. Both tables are append-only: a token is never changed, and a revocation is never taken back."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, UtcDateTime


class ApiToken(Base):
    """A token that was given out. The token itself is not kept, only its SHA-256: it has 256 random bits."""

    __tablename__ = "api_token"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    name: Mapped[str] = mapped_column(sa.String(64), nullable=False, index=True)
    team: Mapped[str | None] = mapped_column(sa.String(64))
    digest: Mapped[bytes] = mapped_column(sa.LargeBinary(32), nullable=False, unique=True)
    scopes: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    for_others: Mapped[bool] = mapped_column(sa.Boolean, nullable=False)
    created_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    expires_at: Mapped[datetime.datetime | None] = mapped_column(UtcDateTime)


class ApiTokenRevocation(Base):
    """The end of a token."""

    __tablename__ = "api_token_revocation"

    token_id: Mapped[str] = mapped_column(sa.ForeignKey("api_token.id"), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    revoked_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
