"""What jobs really used, append-only; one row for each job of a sizing."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, BigInteger, UtcDateTime


class Observation(Base):
    """One job. Beside what was seen stands what had been predicted, so that both can be compared without the answer.

    `predicted` is the answer's `per_gpu.peak` as JSON text. `asked_at` is when the sizing was recorded, for search.
    """

    __tablename__ = "observation"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    event_id: Mapped[str] = mapped_column(
        sa.ForeignKey("audit_entry.event_id", deferrable=True, initially="DEFERRED"), nullable=False, unique=True
    )
    sizing_id: Mapped[str] = mapped_column(sa.ForeignKey("sizing.id"), nullable=False)
    job_id: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    recorded_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    asked_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)
    observed_by: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    outcome: Mapped[str] = mapped_column(sa.String(8), nullable=False)
    gpus: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    allocated_bytes: Mapped[int | None] = mapped_column(BigInteger)
    reserved_bytes: Mapped[int | None] = mapped_column(BigInteger)
    device_bytes: Mapped[int | None] = mapped_column(BigInteger)
    framework: Mapped[str | None] = mapped_column(sa.String(100))
    framework_version: Mapped[str | None] = mapped_column(sa.String(100))
    fingerprint: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    model: Mapped[str] = mapped_column(sa.String(100), nullable=False)
    stack: Mapped[str] = mapped_column(sa.String(32), nullable=False)
    engine: Mapped[str] = mapped_column(sa.String(32), nullable=False)
    predicted: Mapped[str] = mapped_column(sa.Text, nullable=False)

    __table_args__ = (
        sa.UniqueConstraint("sizing_id", "job_id"),
        sa.Index(None, "outcome", "asked_at", "sizing_id"),
        sa.Index(None, "stack", "model", "recorded_at"),
    )
