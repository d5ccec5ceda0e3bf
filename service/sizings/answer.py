"""The one use case without its record: resolve names, settle inputs, size, say it in the contract's words.

Nothing here knows HTTP or a database, so the terminal and the service give the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from service import __version__
from service.catalog.facts import Catalog
from service.catalog.resolve import ResolvedGpu, ResolvedModel, resolve_gpus
from service.engine.errors import InvalidInput
from service.engine.explain import explain
from service.engine.floor import floor
from service.engine.hardware import Gpu
from service.engine.lever_options import pinned
from service.engine.levers import Lever, levers, past_the_floor
from service.engine.parameters import active_count
from service.engine.recommend import Shortfall, next_smaller, shortfall
from service.engine.search.choices import alternatives
from service.engine.search.minimum import minimum
from service.engine.size import Sizing
from service.requests.request import SizingRequest
from service.sizings import render, words
from service.sizings.answering import Answered, answer_for
from service.sizings.comparing import comparison
from service.sizings.inputs import Input
from service.sizings.names import resolve_names
from service.sizings.nearest import nearest_run
from service.sizings.timing import time_json


class Detail(NamedTuple):
    """Ask for the rows of the ledger beside the terms: of one term or all, at one moment or where it is largest."""

    term: str | None = None
    moment: str | None = None


def answer(request: SizingRequest, catalog: Catalog, detail: Detail | None = None) -> dict[str, Any]:
    """The sizing of the contract (section 2) without `id`, `recorded_at` and `audit`; raises InvalidInput.

    With `detail` it has one member more, `rows`: the ledger of the fullest GPU (`engine.explain`).
    """
    model, gpus = resolve_names(request, catalog)
    answered, left_out = _answer_each(request, model, gpus)
    chosen = min(answered, key=Answered.rank)
    found = levers(chosen.plan)
    kept = {} if chosen.laid_out and len(answered) == 1 else pinned(chosen.plan) | {"gpu": chosen.gpu.gpu.id}
    missing = _missing(chosen)
    rows = {} if detail is None else {"rows": explain(chosen.sizing, detail.term, detail.moment)}
    return {
        "engine_version": __version__,
        "catalog_digest": catalog.digest,
        "request": dict(request.as_asked),
        "inputs": inputs_json(request, chosen),
        "model": model_json(model, chosen.sizing),
        "gpu": render.gpu_json(chosen.gpu.gpu, chosen.sizing.usable_bytes),
        "whole_model": render.whole_model(chosen.sizing),
        "per_gpu": render.per_gpu(chosen.plan, chosen.sizing, *words.confidence(chosen.sizing)),
        "recommendation": recommendation_json(chosen, missing),
        "sharding_floor": floor_json(chosen, found),
        "levers": [render.lever_json(lever, kept) for lever in found],
        "time": time_json(chosen.plan, chosen.tokens),
        "verdict": words.verdict(chosen.plan, chosen.sizing, missing),
        "comparison": comparison(answered),
        "nearest_fit": nearest_fit_json(chosen, catalog),
        "warnings": warnings_json(model, chosen, left_out),
        **rows,
    }


def _answer_each(
    request: SizingRequest, model: ResolvedModel, gpus: list[ResolvedGpu]
) -> tuple[list[Answered], list[tuple[str, str]]]:
    """Answers for the GPUs that have one, and a warning for each that has none; refused when none has."""
    answered: list[Answered] = []
    refused: list[tuple[ResolvedGpu, InvalidInput]] = []
    for gpu in gpus:
        try:
            answered.append(answer_for(request, model, gpu))
        except InvalidInput as problem:
            refused.append((gpu, problem))
    if not answered:
        raise refused[0][1]
    return answered, [("gpu_left_out", f"{gpu.gpu.name}: {problem}") for gpu, problem in refused]


def _missing(chosen: Answered) -> Shortfall | None:
    """Why fewer GPUs (or, where it does not fit, these) are too few."""
    if not chosen.sizing.fits:
        return shortfall(chosen.plan, chosen.sizing)
    found = chosen.recommendation
    if found is None or found.minimum_gpus != chosen.plan.gpus:
        return None
    return next_smaller(chosen.question, chosen.plan.gpus)


def inputs_json(request: SizingRequest, chosen: Answered) -> dict[str, Any]:
    """Every input with where it came from; degrees that nobody gave are derived."""
    merged: dict[str, Input] = dict(chosen.inputs)
    layout, run = chosen.plan.layout, chosen.plan.run
    derived: Mapping[str, Any] = {
        "tp": int(layout.tp), "sp": layout.sp, "pp": int(layout.pp), "vpp": layout.vpp, "cp": int(layout.cp),
        "ep": int(layout.ep), "etp": int(layout.etp), "dp": int(layout.dp), "shard": layout.shard,
        "recompute": run.recompute.text, "micro_batch": int(run.micro_batch), "gpus": chosen.plan.gpus,
        "gradient_dtype": chosen.sizing.recipe.gradients[-1], "vocab_multiple": run.vocab_multiple or 1,
    }  # fmt: skip
    for name, value in derived.items():
        given = merged.get(name)
        asked = given is not None and given.source in ("request", "solved") and given.value != "auto"
        if asked and given is not None and given.value is not None:
            continue
        unchanged = given is not None and given.source == "default" and given.value == value
        merged[name] = given if unchanged and given is not None else Input(value, "derived")
    merged["gpu"] = Input(chosen.gpu.gpu.id, "default" if request.gpu is None else "request")
    return {name: {"value": entry.value, "from": entry.source} for name, entry in sorted(merged.items())}


def model_json(model: ResolvedModel, sizing: Sizing) -> dict[str, Any]:
    """The model of the answer and which others its name may have meant."""
    return {
        "id": model.id,
        "name": model.name,
        "parameters": sizing.parameters,
        "active_parameters": active_count(model.architecture),
        "trainable_parameters": sizing.trainable_parameters,
        "alternatives": list(model.alternatives),
    }


def recommendation_json(chosen: Answered, missing: Shortfall | None) -> dict[str, Any] | None:
    """The recommended count and layout, why not fewer, and other ways; null when there is nothing to recommend."""
    found = chosen.recommendation
    if found is None:
        return None
    smallest = found.minimum_gpus
    if smallest is None:
        smallest = minimum(chosen.question) or found.plan.gpus
    sizing = chosen.sizing if found.plan == chosen.plan else found.plan.size()
    return {
        "gpus": found.plan.gpus,
        "nodes": found.plan.nodes,
        "minimum_gpus": smallest,
        "layout": render.layout_json(sizing.layout, sizing.run),
        "why": words.why(chosen, found.plan, sizing, smallest, missing),
        "alternatives": [
            render.alternative_json(other.plan, other.plan.size(), other.lever, chosen.tokens)
            for other in alternatives(found.fit, smallest)
        ],
    }


def floor_json(chosen: Answered, found: list[Lever]) -> dict[str, Any]:
    """The floor of the answer's own layout, and the next lever that lowers it."""
    return render.floor_json(floor(chosen.plan), chosen.sizing, past_the_floor(chosen.plan, found))


def nearest_fit_json(chosen: Answered, catalog: Catalog) -> dict[str, Any] | None:
    """The run one change away that some count holds; null when this one is held, or when no single change helps."""
    if not chosen.nowhere:
        return None

    def others() -> Iterable[Gpu]:
        return (resolved.gpu for resolved in resolve_gpus(catalog, "any"))

    found = nearest_run(chosen.free_question(), others)
    if found is None:
        return None
    sizing = found.plan.size()
    return {
        "change": found.change,
        "gpus": found.plan.gpus,
        "nodes": found.plan.nodes,
        "layout": render.layout_json(sizing.layout, sizing.run),
        "peak_bytes": sizing.peak.device_bytes,
        "headroom_bytes": sizing.headroom_bytes,
    }


def warnings_json(model: ResolvedModel, chosen: Answered, left_out: list[tuple[str, str]]) -> list[dict[str, str]]:
    """What a reader must know before trusting the answer."""
    pairs = [
        *model.warnings,
        *chosen.gpu.warnings,
        *left_out,
        *words.warnings(chosen.plan, chosen.sizing, chosen.inputs),
    ]
    return [{"code": code, "message": message} for code, message in pairs]
