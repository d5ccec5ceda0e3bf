"""Recorded sizings, append-only, and the keys under which a request may be repeated.

Revision 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import forbid_changes

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sizing",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("requester", sa.String(200), nullable=False),
        sa.Column("team", sa.String(100)),
        sa.Column("via", sa.String(16), nullable=False),
        sa.Column("model", sa.String(100), nullable=False),
        sa.Column("gpu", sa.String(100), nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("verdict_text", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sizing"),
        sa.UniqueConstraint("event_id", name="uq_sizing_event_id"),
        sa.ForeignKeyConstraint(
            ["event_id"], ["audit_entry.event_id"], name="fk_sizing_event_id", deferrable=True, initially="DEFERRED"
        ),
    )
    op.create_index("ix_sizing_recorded_at_id", "sizing", ["recorded_at", "id"])
    for column in ("requester", "team", "model", "gpu", "verdict"):
        op.create_index(f"ix_sizing_{column}_recorded_at_id", "sizing", [column, "recorded_at", "id"])
    forbid_changes("sizing", "id", "event_id")
    _idempotency_keys()


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_key",
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("sizing_id", sa.String(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name="pk_idempotency_key"),
        sa.ForeignKeyConstraint(
            ["sizing_id"], ["sizing.id"], name="fk_idempotency_key_sizing_id", deferrable=True, initially="DEFERRED"
        ),
    )
    op.create_index("ix_idempotency_key_created_at", "idempotency_key", ["created_at"])


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
