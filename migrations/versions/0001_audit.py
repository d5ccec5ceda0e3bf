"""The audit: head, entries and free text, append-only.

Revision 0001, the first.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import create_refusal, forbid_changes, forbid_shrinking

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

big_integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    create_refusal()
    _head()
    _entries()
    _texts()


def _head() -> None:
    head = op.create_table(
        "audit_head",
        sa.Column("log", sa.String(32), nullable=False),
        sa.Column("size", big_integer, nullable=False),
        sa.Column("head", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("log", name="pk_audit_head"),
    )
    op.bulk_insert(head, [{"log": "main", "size": 0, "head": bytes(32)}])
    forbid_shrinking("audit_head", key="log", size="size")


def _entries() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("seq", big_integer, autoincrement=False, nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("prev", sa.LargeBinary(32), nullable=False),
        sa.Column("hash", sa.LargeBinary(32), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(200)),
        sa.PrimaryKeyConstraint("seq", name="pk_audit_entry"),
        sa.UniqueConstraint("event_id", name="uq_audit_entry_event_id"),
        sa.UniqueConstraint("prev", name="uq_audit_entry_prev"),
        sa.UniqueConstraint("hash", name="uq_audit_entry_hash"),
    )
    for column in ("occurred_at", "actor", "action", "subject"):
        op.create_index(f"ix_audit_entry_{column}_seq", "audit_entry", [column, "seq"])
    forbid_changes("audit_entry", "seq", "event_id", "prev", "hash")


def _texts() -> None:
    op.create_table(
        "audit_text",
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("salt", sa.LargeBinary(32), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("event_id", "name", name="pk_audit_text"),
        sa.ForeignKeyConstraint(
            ["event_id"],
            ["audit_entry.event_id"],
            name="fk_audit_text_event_id",
            deferrable=True,
            initially="DEFERRED",
        ),
    )
    forbid_changes("audit_text", erasable=True)


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
