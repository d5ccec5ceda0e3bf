"""Decisions, append-only; several on one sizing, in order."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, UtcDateTime


class Decision(Base):
    """One decision. Its reason is free text, which lies in `audit_text` and can be erased.

    `place` counts the decisions of one sizing from 1; the last one stands. `request_key` is a digest of the caller and
    its Idempotency-Key, `fingerprint` of what was asked under it. `asked_at` is when the sizing was recorded.
    """

    __tablename__ = "decision"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    sizing_id: Mapped[str] = mapped_column(sa.ForeignKey("sizing.id"), nullable=False)
    place: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    recorded_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    asked_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    decided_by: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    decision: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    gpus_granted: Mapped[int | None] = mapped_column(sa.Integer)
    gpu: Mapped[str | None] = mapped_column(sa.String(100))
    request_key: Mapped[str | None] = mapped_column(sa.String(64), unique=True)
    fingerprint: Mapped[str] = mapped_column(sa.String(64), nullable=False)

    __table_args__ = (
        sa.UniqueConstraint("sizing_id", "place"),
        sa.Index(None, "decision", "asked_at", "sizing_id"),
    )
