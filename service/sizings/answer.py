"""The one use case without its record: resolve names, settle inputs, size, say it in the contract's words.

Nothing here knows HTTP or a database, so the terminal and the service give the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from service import __version__
from service.catalog.facts import Catalog
from service.catalog.resolve import ResolvedGpu, ResolvedModel, resolve_gpus, resolve_model
from service.engine.floor import floor
from service.engine.levers import Lever, levers
from service.engine.parameters import active_count
from service.engine.question import Plan
from service.engine.recommend import Recommendation, Shortfall, recommend, shortfall
from service.engine.size import Sizing
from service.requests.request import SizingRequest
from service.sizings import render, solving, words
from service.sizings.asking import Asked, ask
from service.sizings.inputs import DEFAULT_GPU, Input, settle


class Answered(NamedTuple):
    """One question answered for one GPU."""

    gpu: ResolvedGpu
    inputs: dict[str, Input]
    plan: Plan
    sizing: Sizing
    #: None when a layout was given, or when no count of this GPU holds the run
    recommendation: Recommendation | None
    shortfall: Shortfall | None
    fits_nowhere: bool


def answer(request: SizingRequest, catalog: Catalog) -> dict[str, Any]:
    """The sizing of the contract (section 2) without `id`, `recorded_at` and `audit`; raises InvalidInput."""
    model = resolve_model(catalog, request.model)
    gpus = resolve_gpus(catalog, request.gpu if request.gpu is not None else DEFAULT_GPU)
    answered = [answer_for(request, model, gpu) for gpu in gpus]
    chosen = min(answered, key=lambda one: (not one.sizing.fits, one.plan.gpus, -one.sizing.headroom_bytes))
    found = levers(chosen.plan, chosen.sizing)
    return {
        "engine_version": __version__,
        "catalog_digest": catalog.digest,
        "request": dict(request.as_asked),
        "inputs": inputs_json(request, chosen),
        "model": model_json(model, chosen.sizing),
        "gpu": render.gpu_json(chosen.gpu.gpu, chosen.sizing.usable_bytes),
        "whole_model": render.whole_model(chosen.sizing),
        "per_gpu": render.per_gpu(chosen.plan, chosen.sizing, *words.confidence(chosen.sizing)),
        "recommendation": recommendation_json(chosen),
        "sharding_floor": floor_json(chosen, found),
        "levers": [render.lever_json(lever) for lever in found],
        "time": None,
        "verdict": words.verdict(chosen.plan, chosen.sizing, chosen.shortfall),
        "comparison": [words.comparison(one.plan, one.sizing) for one in answered] if len(answered) > 1 else None,
        "nearest_fit": None,
        "warnings": warnings_json(model, chosen),
    }


def answer_for(request: SizingRequest, model: ResolvedModel, gpu: ResolvedGpu) -> Answered:
    """Answer for one GPU: as laid out, on the GPUs at hand, or on as few as hold the run."""
    inputs = settle(request, model.architecture, gpu.gpu)
    asked = ask(request, inputs, model.architecture, gpu.gpu)
    if request.solve is not None:
        asked, inputs = solving.solve(request.solve, asked, inputs)
    if asked.plan is not None:
        sizing = asked.plan.size()
        found = None if sizing.fits else recommend(asked.question)
        return Answered(gpu, inputs, asked.plan, sizing, found, None, False)
    if asked.gpus is not None:
        return _on_hand(asked, asked.gpus, gpu, inputs)
    recommended = recommend(asked.question)
    if recommended is None:
        made, sizing = solving.largest(asked.question)
        return Answered(gpu, inputs, made, sizing, None, shortfall(made, sizing), True)
    return Answered(gpu, inputs, recommended.plan, recommended.sizing, recommended, recommended.shortfall, False)


def _on_hand(asked: Asked, gpus: int, gpu: ResolvedGpu, inputs: dict[str, Input]) -> Answered:
    """The best layout of exactly `gpus` GPUs; when it does not fit, what would."""
    made, sizing = solving.best_or_refuse(asked.question, gpus)
    found = recommend(asked.question) if not sizing.fits else None
    return Answered(gpu, inputs, made, sizing, found, None if sizing.fits else shortfall(made, sizing), False)


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


def recommendation_json(chosen: Answered) -> dict[str, Any] | None:
    """The recommended count and layout, why not fewer, and other ways; null when there is nothing to recommend."""
    found = chosen.recommendation
    if found is None:
        return None
    return {
        "gpus": found.plan.gpus,
        "nodes": found.plan.nodes,
        "minimum_gpus": found.minimum_gpus,
        "layout": render.layout_json(found.sizing.layout, found.sizing.run),
        "why": words.why(found),
        "alternatives": [render.alternative_json(*other) for other in found.alternatives],
    }


def floor_json(chosen: Answered, found: list[Lever]) -> dict[str, Any]:
    """The floor of the answer's own layout, and the next lever that touches what sharding does not."""
    then = next((lever.text for lever in found if lever.touches == "activations"), None)
    return render.floor_json(floor(chosen.plan), chosen.sizing, then)


def warnings_json(model: ResolvedModel, chosen: Answered) -> list[dict[str, str]]:
    """What a reader must know before trusting the answer."""
    pairs = [*model.warnings, *chosen.gpu.warnings, *words.warnings(chosen.plan, chosen.sizing, chosen.inputs)]
    return [{"code": code, "message": message} for code, message in pairs]
