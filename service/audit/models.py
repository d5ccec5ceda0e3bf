"""The tables of the audit, in their final form (docs/audit.md): nothing recorded is ever migrated."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, BigInteger, UtcDateTime

HASH_BYTES = 32


class AuditHead(Base):
    """Where a log ends. The one row of a log is what every writer takes first, so entries cannot fork.

    `stopped` when a fault was found that nobody acknowledged yet: nothing is appended then.
    """

    __tablename__ = "audit_head"

    log: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger, nullable=False)
    head: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False)
    stopped: Mapped[bool] = mapped_column(sa.Boolean, nullable=False, server_default=sa.false())


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
        sa.Index(None, "actor", "action", "seq"),
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


class AuditTile(Base):
    """Hashes of the Merkle tree as they were when a checkpoint was signed: `width` of them side by side.

    Level 0 has leaves, level L the roots of 256^L leaves. A tile that was not full is there once for each checkpoint.
    """

    __tablename__ = "audit_tile"

    level: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    tile: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    width: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    hashes: Mapped[bytes] = mapped_column(sa.LargeBinary, nullable=False)


class AuditCheckpoint(Base):
    """A signed statement of what the first `size` entries were. `note` is the whole signed note."""

    __tablename__ = "audit_checkpoint"

    size: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    root: Mapped[bytes] = mapped_column(sa.LargeBinary(HASH_BYTES), nullable=False)
    note: Mapped[str] = mapped_column(sa.Text, nullable=False)
    made_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)


class AuditKey(Base):
    """A public key that signs checkpoints. `note` is the introduction that the key before it signed, if one did."""

    __tablename__ = "audit_key"

    vkey: Mapped[str] = mapped_column(sa.String(300), primary_key=True)
    place: Mapped[int] = mapped_column(sa.Integer, nullable=False, unique=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    note: Mapped[str | None] = mapped_column(sa.Text)


class AuditPublication(Base):
    """That a checkpoint was put somewhere outside; `place` is a digest, since an address may be a secret."""

    __tablename__ = "audit_publication"

    size: Mapped[int] = mapped_column(sa.ForeignKey("audit_checkpoint.size"), primary_key=True)
    place: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    published_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)


class AuditFault(Base):
    """Something that was found to be not as it was written, once."""

    __tablename__ = "audit_fault"

    fingerprint: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, nullable=False)
    upto: Mapped[int] = mapped_column(BigInteger, nullable=False)
    what: Mapped[str] = mapped_column(sa.Text, nullable=False)
    found_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)


class AuditAcknowledgement(Base):
    """That an administrator knows of a fault, by which writing goes on."""

    __tablename__ = "audit_acknowledgement"

    fingerprint: Mapped[str] = mapped_column(sa.ForeignKey("audit_fault.fingerprint"), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False
    )
