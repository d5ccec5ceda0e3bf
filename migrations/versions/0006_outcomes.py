"""Decisions on sizings, and observations of the jobs; append-only.

Revision 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import forbid_changes

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

big_integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _decisions()
    _observations()


def _decisions() -> None:
    op.create_table(
        "decision",
        *_common("decision"),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("decided_by", sa.String(200), nullable=False),
        sa.Column("decision", sa.String(16), nullable=False),
        sa.Column("gpus_granted", sa.Integer),
        sa.Column("gpu", sa.String(100)),
        sa.Column("request_key", sa.String(64)),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.UniqueConstraint("sizing_id", "place", name="uq_decision_sizing_id_place"),
        sa.UniqueConstraint("request_key", name="uq_decision_request_key"),
    )
    op.create_index("ix_decision_decision_asked_at_sizing_id", "decision", ["decision", "asked_at", "sizing_id"])
    forbid_changes("decision", "id", "event_id", "request_key")


def _observations() -> None:
    op.create_table(
        "observation",
        *_common("observation"),
        sa.Column("job_id", sa.String(200), nullable=False),
        sa.Column("observed_by", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(8), nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("allocated_bytes", big_integer),
        sa.Column("reserved_bytes", big_integer),
        sa.Column("device_bytes", big_integer),
        sa.Column("framework", sa.String(100)),
        sa.Column("framework_version", sa.String(100)),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("stack", sa.String(32), nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("predicted", sa.Text, nullable=False),
        sa.UniqueConstraint("sizing_id", "job_id", name="uq_observation_sizing_id_job_id"),
    )
    op.create_index("ix_observation_outcome_asked_at_sizing_id", "observation", ["outcome", "asked_at", "sizing_id"])
    op.create_index("ix_observation_stack_model_recorded_at", "observation", ["stack", "model", "recorded_at"])
    forbid_changes("observation", "id", "event_id")


def _common(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("sizing_id", sa.String(32), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("event_id", name=f"uq_{table}_event_id"),
        sa.ForeignKeyConstraint(["sizing_id"], ["sizing.id"], name=f"fk_{table}_sizing_id"),
        sa.ForeignKeyConstraint(
            ["event_id"], ["audit_entry.event_id"], name=f"fk_{table}_event_id", deferrable=True, initially="DEFERRED"
        ),
    ]


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
