"""Recorded sizings and the keys under which callers may repeat a request safely."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, UtcDateTime


class Sizing(Base):
    """One question and its whole answer, written once and never changed.

    `request` is the question as flat JSON. A typed command is not here: its text lies in `audit_text`, where it may be
    erased, and `request` has what it meant. `answer` is the engine's answer as JSON text, without the members that
    recording adds; its SHA-256 stands in the audit entry, so a changed answer is noticed.
    """

    __tablename__ = "sizing"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    recorded_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    requester: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    team: Mapped[str | None] = mapped_column(sa.String(100))
    via: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    model: Mapped[str] = mapped_column(sa.String(100), nullable=False)
    gpu: Mapped[str] = mapped_column(sa.String(100), nullable=False)
    gpus: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    verdict: Mapped[str] = mapped_column(sa.String(16), nullable=False)
    verdict_text: Mapped[str] = mapped_column(sa.Text, nullable=False)
    request: Mapped[str] = mapped_column(sa.Text, nullable=False)
    answer: Mapped[str] = mapped_column(sa.Text, nullable=False)

    __table_args__ = (
        sa.Index(None, "recorded_at", "id"),
        sa.Index(None, "requester", "recorded_at", "id"),
        sa.Index(None, "team", "recorded_at", "id"),
        sa.Index(None, "model", "recorded_at", "id"),
        sa.Index(None, "gpu", "recorded_at", "id"),
        sa.Index(None, "verdict", "recorded_at", "id"),
    )


class IdempotencyKey(Base):
    """A caller's key for one recorded request, kept for a day, written in the transaction of the result."""

    __tablename__ = "idempotency_key"

    caller: Mapped[str] = mapped_column(sa.String(200), primary_key=True)
    key: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    sizing_id: Mapped[str] = mapped_column(
        sa.ForeignKey("sizing.id", deferrable=True, initially="DEFERRED"), nullable=False
    )
    created_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False, index=True)
