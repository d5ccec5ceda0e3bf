"""The catalogue: GPUs with their spellings and prices, models with theirs.

Revision 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

big_integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "catalog_state",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("loaded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_catalog_state"),
    )
    _gpus()
    _models()


def _gpus() -> None:
    op.create_table(
        "gpu_sku",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("vendor", sa.String(100), nullable=False),
        sa.Column("memory_bytes", big_integer),
        sa.Column("facts", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_gpu_sku"),
    )
    op.create_table(
        "gpu_alias",
        sa.Column("alias", sa.String(300), nullable=False),
        sa.Column("sku_id", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("alias", "sku_id", name="pk_gpu_alias"),
        sa.ForeignKeyConstraint(["sku_id"], ["gpu_sku.id"], name="fk_gpu_alias_sku_id", ondelete="CASCADE"),
    )
    op.create_index("ix_gpu_alias_sku_id", "gpu_alias", ["sku_id"])
    op.create_table(
        "price_offer",
        sa.Column("sku_id", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("provider", sa.String(200), nullable=False),
        sa.Column("usd_per_gpu_hour", sa.String(32), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("seen", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("sku_id", "position", name="pk_price_offer"),
        sa.ForeignKeyConstraint(["sku_id"], ["gpu_sku.id"], name="fk_price_offer_sku_id", ondelete="CASCADE"),
    )


def _models() -> None:
    op.create_table(
        "model_architecture",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("parameters", big_integer),
        sa.Column("facts", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_model_architecture"),
    )
    op.create_table(
        "model_alias",
        sa.Column("alias", sa.String(300), nullable=False),
        sa.Column("model_id", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("alias", "model_id", name="pk_model_alias"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["model_architecture.id"], name="fk_model_alias_model_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_model_alias_model_id", "model_alias", ["model_id"])


def downgrade() -> None:
    raise RuntimeError("Migrations are not taken back; restore a backup (docs/operations.md).")
