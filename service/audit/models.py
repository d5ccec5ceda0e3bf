"""The tables of the audit, in their final form (docs/audit.md): nothing recorded is ever migrated."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, BigInteger, UtcDateTime

HASH_BYTES = 32


class AuditHead(Base):
    """Where a log ends. The one row of a log is what every writer takes first, so entries cannot fork."""

    __tablename__ = "audit_head"

    log: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger, nullable=False)
    head: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False)


class AuditEntry(Base):
    """One event. `body` holds exactly the bytes that are hashed; `prev` and `hash` are the chain.

    The four columns after them are copies out of the body for searching. The chain does not cover them; trust the body.
    """

    __tablename__ = "audit_entry"

    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    event_id: Mapped[str] = mapped_column(sa.String(36), nullable=False, unique=True)
    body: Mapped[str] = mapped_column(sa.Text, nullable=False)
    prev: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False, unique=True)
    hash: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False, unique=True)

    occurred_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    actor: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    action: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    subject: Mapped[str | None] = mapped_column(sa.String(200))

    __table_args__ = (
        sa.Index(None, "occurred_at", "seq"),
        sa.Index(None, "actor", "seq"),
        sa.Index(None, "action", "seq"),
        sa.Index(None, "subject", "seq"),
    )


class AuditText(Base):
    """Free text that a person typed, kept aside so that it can be erased while the chain stays whole.

    The body of its entry has SHA-256(salt ‖ text) under `<name>_sha256`. Rows may be deleted, never changed.
    """

    __tablename__ = "audit_text"

    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), primary_key=True
    )
    name: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    salt: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False)
    text: Mapped[str] = mapped_column(sa.Text, nullable=False)
