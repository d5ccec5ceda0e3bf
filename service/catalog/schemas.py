"""The public shape of the catalogue."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from service.catalog.facts import GpuFact, ModelFact


class CatalogQuery(ma.Schema):
    """How a catalogue list is asked for."""

    q = fields.String(
        validate=validate.Length(max=200),
        metadata={"description": "Words that an id, a name or another spelling has; case and punctuation do not count"},
    )
    cursor = fields.String(metadata={"description": "`next` of the page before"})
    limit = fields.Integer(
        load_default=100, validate=validate.Range(1, 500), metadata={"description": "Items on a page"}
    )


class Money(ma.Schema):
    """An amount as decimal text, and when the price was seen."""

    usd = fields.String(required=True)
    price_date = fields.String(required=True, allow_none=True)


class Gpu(ma.Schema):
    """One accelerator. `memory_bytes` is what an allocator sees; null where nobody reported it."""

    id = fields.String(required=True)
    name = fields.String(required=True)
    vendor = fields.String(required=True)
    architecture = fields.String(required=True, allow_none=True)
    compute_capability = fields.String(required=True, allow_none=True)
    form_factor = fields.String(required=True, allow_none=True)
    label_gb = fields.Integer(required=True, allow_none=True, metadata={"description": "What is written on the box"})
    memory_bytes = fields.Integer(required=True, allow_none=True)
    memory_type = fields.String(required=True, allow_none=True)
    gpus_per_node = fields.Integer(required=True)
    scale_up_domain = fields.Integer(required=True, metadata={"description": "GPUs that share NVLink or its like"})
    interconnect_gb_s = fields.Float(required=True, allow_none=True)
    dense_tflops = fields.Dict(
        keys=fields.String(), values=fields.Float(allow_none=True), required=True,
        metadata={"description": "By number format, 10^12 operations a second, without sparsity"},
    )  # fmt: skip
    price_per_hour = fields.Nested(Money, required=True, allow_none=True)
    aliases = fields.List(fields.String(), required=True)


class Offer(ma.Schema):
    """What one provider asked for one GPU and one hour."""

    provider = fields.String(required=True)
    usd = fields.String(required=True)
    price_date = fields.String(required=True)
    source = fields.String(required=True)


class GpuDetail(Gpu):
    """One accelerator with where its figures come from."""

    offers = fields.List(fields.Nested(Offer), required=True)
    confidence = fields.String(required=True, allow_none=True)
    notes = fields.String(required=True, allow_none=True)
    sources = fields.List(fields.String(), required=True)


class Model(ma.Schema):
    """One model. `supported` is false where only totals are known and no run can be sized."""

    id = fields.String(required=True)
    name = fields.String(required=True)
    family = fields.String(required=True)
    kind = fields.String(required=True)
    year = fields.Integer(required=True, allow_none=True)
    parameters = fields.Integer(required=True, allow_none=True)
    active_parameters = fields.Integer(required=True, allow_none=True)
    max_positions = fields.Integer(required=True, allow_none=True)
    supported = fields.Boolean(required=True)
    bare_sizes = fields.List(
        fields.String(), required=True, metadata={"description": "Sizes that mean this model when nothing else is said"}
    )
    aliases = fields.List(fields.String(), required=True)


class ModelDetail(Model):
    """One model with its configuration and where its figures come from."""

    repos = fields.List(fields.String(), required=True, metadata={"description": "Hugging Face names of this shape"})
    hf_config = fields.Dict(required=True, metadata={"description": "The transformers configuration it is sized from"})
    published_parameters = fields.Integer(required=True, allow_none=True)
    confidence = fields.String(required=True, allow_none=True)
    notes = fields.String(required=True, allow_none=True)
    sources = fields.List(fields.String(), required=True)


def _page(item: type[ma.Schema]) -> type[ma.Schema]:
    members: dict[str, Any] = {
        "items": fields.List(fields.Nested(item), required=True),
        "next": fields.String(required=True, allow_none=True, metadata={"description": "Cursor of the page after"}),
    }
    return ma.Schema.from_dict(members, name=f"{item.__name__}Page")


GpuPage = _page(Gpu)
ModelPage = _page(Model)


def gpu(fact: GpuFact) -> dict[str, Any]:
    """What a list says of a GPU."""
    return {
        "id": fact.id,
        "name": fact.name,
        "vendor": fact.vendor,
        "architecture": fact.architecture,
        "compute_capability": fact.compute_capability,
        "form_factor": fact.form_factor,
        "label_gb": fact.label_gb,
        "memory_bytes": fact.memory_bytes,
        "memory_type": fact.memory_type,
        "gpus_per_node": fact.gpus_per_node,
        "scale_up_domain": fact.scale_up_domain,
        "interconnect_gb_s": fact.interconnect_gb_s,
        "dense_tflops": dict(fact.dense_tflops),
        "price_per_hour": _money(fact.price_usd_per_hour, fact.price_date),
        "aliases": list(fact.aliases),
    }


def gpu_detail(fact: GpuFact) -> dict[str, Any]:
    """Everything that is known of a GPU, with sources."""
    offers = [
        {"provider": o.provider, "usd": f"{o.usd_per_gpu_hour:.2f}", "price_date": o.date, "source": o.source}
        for o in fact.prices
    ]
    return {
        **gpu(fact),
        "offers": offers,
        "confidence": fact.row.get("confidence"),
        "notes": fact.row.get("notes"),
        "sources": list(fact.row.get("source_urls", ())),
    }


def model(fact: ModelFact) -> dict[str, Any]:
    """What a list says of a model."""
    return {
        "id": fact.id,
        "name": fact.name,
        "family": fact.family,
        "kind": fact.kind,
        "year": fact.year,
        "parameters": fact.total,
        "active_parameters": fact.active_parameters,
        "max_positions": fact.max_positions,
        "supported": fact.supported,
        "bare_sizes": list(fact.bare_sizes),
        "aliases": list(fact.aliases),
    }


def model_detail(fact: ModelFact) -> dict[str, Any]:
    """Everything that is known of a model, with sources."""
    return {
        **model(fact),
        "repos": list(fact.repos),
        "hf_config": dict(fact.config),
        "published_parameters": fact.published_parameters,
        "confidence": fact.confidence,
        "notes": fact.notes,
        "sources": list(fact.row.get("sources_read", ())),
    }


def _money(usd: float | None, date: str | None) -> dict[str, Any] | None:
    return None if usd is None else {"usd": f"{usd:.2f}", "price_date": date}
