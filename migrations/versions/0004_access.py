"""API tokens and their revocations, append-only.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.append_only import forbid_changes

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_token",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("team", sa.String(64)),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.String(200), nullable=False),
        sa.Column("for_others", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        sa.UniqueConstraint("event_id", name="uq_api_token_event_id"),
        sa.UniqueConstraint("digest", name="uq_api_token_digest"),
        _of_its_entry("api_token"),
    )
    op.create_index("ix_api_token_name", "api_token", ["name"])
    forbid_changes("api_token", "id", "event_id", "digest")
    op.create_table(
        "api_token_revocation",
        sa.Column("token_id", sa.String(32), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("token_id", name="pk_api_token_revocation"),
        sa.UniqueConstraint("event_id", name="uq_api_token_revocation_event_id"),
        sa.ForeignKeyConstraint(["token_id"], ["api_token.id"], name="fk_api_token_revocation_token_id"),
        _of_its_entry("api_token_revocation"),
    )
    forbid_changes("api_token_revocation", "token_id", "event_id")


def _of_its_entry(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["event_id"], ["audit_entry.event_id"], name=f"fk_{table}_event_id", deferrable=True, initially="DEFERRED"
    )


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
