"""The packaged facts: GPUs and models as JSON rows with their sources, read once and never changed.

A Catalog may also be built from rows that live in a database (`Catalog.from_rows`); the same content has the same
digest wherever it comes from. Nothing here knows Flask or SQLAlchemy: the terminal answers from these files alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PriceOffer:
    """What one provider asked on demand for one GPU and one hour, and where that was read."""

    provider: str
    usd_per_gpu_hour: float
    source: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFact:
    """One device. `memory_bytes` is what an allocator sees, None where nobody reported it; `label_gb` is on the box.

    `row` is the whole fact as it is packaged: sources, notes, confidence and the figures that nothing computes with.
    """

    id: str
    name: str
    vendor: str
    aliases: tuple[str, ...] = ()
    driver_names: tuple[str, ...] = ()
    architecture: str | None = None
    compute_capability: str | None = None
    form_factor: str | None = None
    label_gb: int | None = None
    memory_type: str | None = None
    memory_bytes: int | None = None
    dense_tflops: Row = field(default_factory=dict)
    interconnect_gb_s: float | None = None
    gpus_per_node: int = 8
    scale_up_domain: int = 1
    price_usd_per_hour: float | None = None
    prices: tuple[PriceOffer, ...] = ()
    row: Row = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def price_date(self) -> str | None:
        """The newest day (or month, or year) on which one of the prices was read."""
        days = [found[0] for offer in self.prices if (found := re.match(r"\d{4}(-\d\d){0,2}", offer.date))]
        return max(days, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFact:
    """One model. `config` is its transformers configuration; `parameters` counts it exactly (vision tower included).

    `supported` is False where no transformer formula describes the shape: such a row has totals only. `row` is the
    whole fact as it is packaged.
    """

    id: str
    name: str
    family: str
    kind: str
    supported: bool
    aliases: tuple[str, ...] = ()
    bare_sizes: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()
    model_type: str | None = None
    year: int | None = None
    parameters: int | None = None
    text_parameters: int | None = None
    vision_parameters: int | None = None
    published_parameters: int | None = None
    active_parameters: int | None = None
    max_positions: int | None = None
    confidence: str = "low"
    notes: str | None = None
    config: Row = field(default_factory=dict, repr=False)
    row: Row = field(default_factory=dict, repr=False)

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def total(self) -> int | None:
        """The best known number of parameters: counted, else published, else what the hub stores."""
        return self.parameters or self.published_parameters or self.row.get("hub_safetensors_total")


@dataclass(frozen=True, eq=False)
class Catalog:
    """What is known, by id, in catalogue order. `digest` is the SHA-256 of the rows in canonical JSON."""

    gpus: Mapping[str, GpuFact]
    models: Mapping[str, ModelFact]
    digest: str

    @classmethod
    def from_rows(cls, gpus: Iterable[Row], models: Iterable[Row]) -> Catalog:
        gpu_rows, model_rows = list(gpus), list(models)
        content = json.dumps(
            {"gpus": gpu_rows, "models": model_rows}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return cls(
            gpus=MappingProxyType({row["id"]: gpu_fact(row) for row in gpu_rows}),
            models=MappingProxyType({row["id"]: model_fact(row) for row in model_rows}),
            digest=hashlib.sha256(content.encode()).hexdigest(),
        )


@lru_cache(maxsize=1)
def packaged() -> Catalog:
    """The catalogue that the package carries. Reading it takes about 50 ms, once a process."""
    return Catalog.from_rows(_rows("gpus.json"), _rows("models.json"))


def _rows(name: str) -> list[Row]:
    text = resources.files("service.catalog").joinpath("data", name).read_text(encoding="utf-8")
    rows: list[Row] = json.loads(text)["rows"]
    return rows


def gpu_fact(row: Row) -> GpuFact:
    """One row of gpus.json as a fact."""
    interconnect = row.get("interconnect") or {}
    return GpuFact(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        aliases=tuple(row.get("aliases", ())),
        driver_names=tuple(row.get("driver_names", ())),
        architecture=row.get("architecture"),
        compute_capability=row.get("compute_capability"),
        form_factor=row.get("form_factor"),
        label_gb=row.get("marketing_memory_gb"),
        memory_type=row.get("memory_type"),
        memory_bytes=row.get("memory_bytes_total"),
        dense_tflops=MappingProxyType(row.get("dense_tflops", {})),
        interconnect_gb_s=interconnect.get("gb_s_bidirectional_total"),
        gpus_per_node=row.get("gpus_per_node_typical", 8),
        scale_up_domain=row.get("scale_up_domain_size", 1),
        price_usd_per_hour=row.get("price_usd_per_gpu_hour"),
        prices=tuple(PriceOffer(**offer) for offer in row.get("prices", ())),
        row=row,
    )


def model_fact(row: Row) -> ModelFact:
    """One row of models.json as a fact."""
    return ModelFact(
        id=row["id"],
        name=row["name"],
        family=row["family"],
        kind=row["kind"],
        supported=row["supported_shape"],
        aliases=tuple(row.get("aliases", ())),
        bare_sizes=tuple(row.get("bare_size_aliases", ())),
        repos=tuple(dict.fromkeys(filter(None, (row.get("hf_repo"), *row.get("same_architecture_repos", ()))))),
        model_type=row.get("model_type"),
        year=row.get("year"),
        parameters=row.get("meta_parameters"),
        text_parameters=row.get("meta_text_parameters"),
        vision_parameters=row.get("meta_vision_parameters"),
        published_parameters=row.get("published_parameters"),
        active_parameters=row.get("active_parameters_computed"),
        max_positions=row.get("max_positions"),
        confidence=row.get("confidence", "low"),
        notes=row.get("notes"),
        config=MappingProxyType(row.get("transformers_config", {})),
        row=row,
    )
