"""Checkpoints, the tiles and keys behind them, and faults that were found; all append-only.

Revision 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import forbid_changes

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

big_integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("audit_head", sa.Column("stopped", sa.Boolean, nullable=False, server_default=sa.false()))
    _tree()
    _keys()
    _faults()
    op.create_index("ix_audit_entry_actor_action_seq", "audit_entry", ["actor", "action", "seq"])


def _tree() -> None:
    op.create_table(
        "audit_tile",
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("tile", sa.Integer, nullable=False),
        sa.Column("width", sa.Integer, nullable=False),
        sa.Column("hashes", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("level", "tile", "width", name="pk_audit_tile"),
    )
    forbid_changes("audit_tile")
    op.create_table(
        "audit_checkpoint",
        sa.Column("size", big_integer, autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(32), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("size", name="pk_audit_checkpoint"),
    )
    forbid_changes("audit_checkpoint")
    op.create_table(
        "audit_publication",
        sa.Column("size", big_integer, nullable=False),
        sa.Column("place", sa.String(64), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("size", "place", name="pk_audit_publication"),
        sa.ForeignKeyConstraint(["size"], ["audit_checkpoint.size"], name="fk_audit_publication_size"),
    )
    forbid_changes("audit_publication")


def _keys() -> None:
    op.create_table(
        "audit_key",
        sa.Column("vkey", sa.String(300), nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("vkey", name="pk_audit_key"),
        sa.UniqueConstraint("place", name="uq_audit_key_place"),
        sa.UniqueConstraint("event_id", name="uq_audit_key_event_id"),
        _of_its_entry("audit_key"),
    )
    forbid_changes("audit_key", "vkey", "place", "event_id")


def _faults() -> None:
    op.create_table(
        "audit_fault",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("seq", big_integer, nullable=False),
        sa.Column("upto", big_integer, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("found_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_audit_fault"),
    )
    forbid_changes("audit_fault")
    op.create_table(
        "audit_acknowledgement",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_audit_acknowledgement"),
        sa.ForeignKeyConstraint(
            ["fingerprint"], ["audit_fault.fingerprint"], name="fk_audit_acknowledgement_fingerprint"
        ),
        _of_its_entry("audit_acknowledgement"),
    )
    forbid_changes("audit_acknowledgement")


def _of_its_entry(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["event_id"], ["audit_entry.event_id"], name=f"fk_{table}_event_id", deferrable=True, initially="DEFERRED"
    )


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
