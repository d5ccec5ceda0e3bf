"""The catalogue's tables. `facts` is the whole fact as JSON text, the columns beside it serve joins and search."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from service.database import Base, BigInteger, UtcDateTime


class CatalogState(Base):
    """Which catalogue the tables hold. One row; its digest is what every sizing carries."""

    __tablename__ = "catalog_state"

    name: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    digest: Mapped[str] = mapped_column(sa.String(64), nullable=False)
    loaded_at: Mapped[datetime.datetime] = mapped_column(UtcDateTime, nullable=False)


class GpuSku(Base):
    """One accelerator as it is sold."""

    __tablename__ = "gpu_sku"

    id: Mapped[str] = mapped_column(sa.String(100), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    name: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    vendor: Mapped[str] = mapped_column(sa.String(100), nullable=False)
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    facts: Mapped[str] = mapped_column(sa.Text, nullable=False)


class GpuAlias(Base):
    """Another spelling of a SKU. A spelling may be shared; name resolution decides."""

    __tablename__ = "gpu_alias"

    alias: Mapped[str] = mapped_column(sa.String(300), primary_key=True)
    sku_id: Mapped[str] = mapped_column(sa.ForeignKey("gpu_sku.id", ondelete="CASCADE"), primary_key=True, index=True)


class PriceOffer(Base):
    """What a provider asked for one GPU and one hour; money is decimal text."""

    __tablename__ = "price_offer"

    sku_id: Mapped[str] = mapped_column(sa.ForeignKey("gpu_sku.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, primary_key=True)
    provider: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    usd_per_gpu_hour: Mapped[str] = mapped_column(sa.String(32), nullable=False)
    source: Mapped[str] = mapped_column(sa.Text, nullable=False)
    seen: Mapped[str] = mapped_column(sa.String(200), nullable=False)


class ModelArchitecture(Base):
    """One model's shape, or its totals only where no transformer formula describes it."""

    __tablename__ = "model_architecture"

    id: Mapped[str] = mapped_column(sa.String(100), primary_key=True)
    position: Mapped[int] = mapped_column(sa.Integer, nullable=False)
    name: Mapped[str] = mapped_column(sa.String(200), nullable=False)
    parameters: Mapped[int | None] = mapped_column(BigInteger)
    facts: Mapped[str] = mapped_column(sa.Text, nullable=False)


class ModelAlias(Base):
    """Another spelling of a model. A spelling may be shared; name resolution decides."""

    __tablename__ = "model_alias"

    alias: Mapped[str] = mapped_column(sa.String(300), primary_key=True)
    model_id: Mapped[str] = mapped_column(
        sa.ForeignKey("model_architecture.id", ondelete="CASCADE"), primary_key=True, index=True
    )
