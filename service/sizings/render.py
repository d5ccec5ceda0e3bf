"""The engine's answer as the contract's JSON: terms with parts, the peak, stages, floor, levers, alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.engine.floor import Floor
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS, STATE_TERMS, TERMS, Bundle, TermName
from service.engine.levers import Lever
from service.engine.question import Plan
from service.engine.recipe import WHY
from service.engine.run import Run
from service.engine.size import LOSS, Sizing, StageSizing, whole_model_bytes
from service.sizings.timing import short_time

SCALES_WITH: Mapping[TermName, str] = {
    "weights": "parameters",
    "gradients": "parameters",
    "master_weights": "parameters",
    "optimizer_moments": "parameters",
    "activations": "tokens",
    "working": "tokens",
    "runtime": "fixed",
}
BECAUSE: Mapping[TermName, str] = {
    **WHY,  # type: ignore[dict-item]
    "activations": "what backward needs of forward; set by the run's shape, not by the parameter count",
    "working": "alive for part of the step only: gathered weights, logits, buckets, temporaries",
    "runtime": "CUDA context, communication buffers, and blocks the allocator holds",
}
OPTIMIZER_STEP = INSTANTS.index("optimizer_step")


def layout_json(layout: Layout, run: Run) -> dict[str, Any]:
    """The layout with what the run does on it."""
    layers = run.recompute.full_layers
    return {
        "tp": int(layout.tp),
        "sp": layout.sp,
        "pp": int(layout.pp),
        "vpp": int(layout.vpp),
        "cp": int(layout.cp),
        "ep": int(layout.ep),
        "etp": int(layout.etp),
        "dp": int(layout.dp),
        "shard": layout.shard,
        "shard_degree": int(layout.shard_ranks(layout.shard)) if layout.shard != "none" else 1,
        "recompute": {"full_layers": layers} if layers is not None else run.recompute.kind,
        "micro_batch": int(run.micro_batch),
        "stage_layers": None if layout.stage_layers is None else list(layout.stage_layers),
        "gradient_accumulation": int(run.micro_batches),
    }  # fmt: skip


def gpu_json(gpu: Gpu, usable_bytes: int) -> dict[str, Any]:
    """The accelerator of the answer."""
    price = None
    if gpu.price_usd_per_hour is not None:
        price = {"usd": f"{gpu.price_usd_per_hour:.2f}", "price_date": gpu.price_date}
    return {
        "id": gpu.id,
        "name": gpu.name,
        "memory_bytes": gpu.memory_bytes,
        "usable_bytes": usable_bytes,
        "gpus_per_node": gpu.gpus_per_node,
        "price_per_hour": price,
    }


def term(
    name: TermName, size: int, covers: int | None, formula: str, parts: list[dict[str, Any]], scales: str | None = None
) -> dict[str, Any]:
    """One TERM of the contract; `covers` is how many parameters it has bytes for, None where that means nothing."""
    return {
        "term": name,
        "bytes": size,
        "scales_with": scales or SCALES_WITH[name],
        "bytes_per_parameter": round(size / covers, 4) if covers else None,
        "formula": formula,
        "because": BECAUSE[name],
        "parts": parts,
    }


def covered(sizing: Sizing, name: TermName) -> int | None:
    """Parameters that a state term has bytes for: all of them for weights, else what the optimizer updates."""
    if name not in STATE_TERMS:
        return None
    return sizing.parameters if name == "weights" else sizing.trainable_parameters


def parts(bundles: Iterable[Bundle], name: TermName, instant: int) -> list[dict[str, Any]]:
    """The rows of one term at one instant, largest first; rows of the same name and formula are added up."""
    sums: dict[tuple[str, str], int] = {}
    for bundle in bundles:
        copies = int(bundle.alive[instant])
        if bundle.term != name or copies == 0:
            continue
        for row in bundle.rows:
            label = row.name if name in ("activations", "working") else bundle.name
            times = f" × {copies}" if copies > 1 else ""
            key = (label, row.formula + times)
            sums[key] = sums.get(key, 0) + int(row.bytes) * copies
    ordered = sorted(sums.items(), key=lambda item: -item[1])
    return [{"name": label, "bytes": size, "formula": formula} for (label, formula), size in ordered if size]


def whole_model(sizing: Sizing) -> dict[str, Any]:
    """One unsharded copy of everything and one micro-batch."""
    totals, recipe = whole_model_bytes(sizing), sizing.recipe
    per_parameter = {
        "weights": recipe.weight_bytes,
        "gradients": recipe.gradient_bytes,
        "master_weights": recipe.master_bytes,
    }
    terms = []
    for name in TERMS[:5]:
        covers = covered(sizing, name)
        instant = OPTIMIZER_STEP if name == "gradients" else LOSS
        listed = parts(sizing.whole_model, name, instant)
        if name in STATE_TERMS:
            figure = per_parameter.get(name, totals[name] / covers if covers else 0)
            frozen = recipe.frozen_base and name == "weights"
            formula = "base + adapters" if frozen else f"P × {figure:g} B"
            terms.append(term(name, totals[name], covers, formula, listed))
        else:
            terms.append(term(name, totals[name], covers, "sum of the tensors saved for backward", listed))
    state = sum(totals[name] for name in STATE_TERMS)
    return {
        "terms": terms,
        "state_bytes": state,
        "activation_bytes": totals["activations"],
        "bytes_per_parameter": round(state / sizing.parameters, 2),
    }


def stage_terms(stage: StageSizing, sizing: Sizing, *, needed: bool = False) -> list[dict[str, Any]]:
    """The seven terms of one stage at its peak; they add up to its device bytes, or to what it needs at least."""
    totals, formula = stage.line.at(stage.instant), "sum of the rows alive on this GPU"
    made = []
    for name in TERMS[:-1]:
        listed = parts(stage.bundles, name, stage.instant)
        made.append(term(name, int(totals[name]), covered(sizing, name), formula, listed))
    runtime = stage.runtime
    slack, slack_formula = (
        (runtime.firm_slack, "slack that stays") if needed else (runtime.slack, "reserved − allocated")
    )
    quantities = (
        ("allocator", int(slack), slack_formula),
        ("context", int(runtime.context), "per process"),
        ("communicators", int(runtime.communicators), "per group of ranks"),
    )
    listed = [{"name": name, "bytes": size, "formula": formula} for name, size, formula in quantities]
    formula = "needed − allocated" if needed else "device − allocated"
    made.append(term("runtime", sum(size for _, size, _ in quantities), None, formula, listed))
    return made


def per_gpu(made: Plan, sizing: Sizing, because: str, confidence: str) -> dict[str, Any]:
    """What the fullest GPU holds, at which moment, and how the other stages compare."""
    peak = sizing.peak
    device = sizing.intervals["device"]
    return {
        "gpus": made.gpus,
        "nodes": made.nodes,
        "layout": layout_json(sizing.layout, sizing.run),
        "stage": peak.stage,
        "terms": stage_terms(peak, sizing),
        "peak": {
            "allocated_bytes": peak.allocated_bytes,
            "reserved_bytes": peak.reserved_bytes,
            "device_bytes": peak.device_bytes,
            "needed_bytes": sizing.needed_bytes,
            "low_bytes": device.low,
            "high_bytes": device.high,
            "intervals": {level: list(bounds) for level, bounds in sizing.intervals.items()},
            "moment": sizing.moment,
            "confidence": confidence,
            "because": because,
        },
        "moments": [
            {"moment": moment, "allocated_bytes": sum(terms.values()), "terms": terms}
            for moment, terms in sizing.moments()
        ],
        "stages": [
            {
                "stage": stage.stage,
                "parameters": stage.parameters,
                "allocated_bytes": stage.allocated_bytes,
                "reserved_bytes": stage.reserved_bytes,
                "device_bytes": stage.device_bytes,
                "saved_bytes": stage.saved_bytes,
            }
            for stage in sizing.stages
        ],
        "host_bytes": peak.host_bytes,
        "usable_bytes": sizing.usable_bytes,
        "headroom_bytes": sizing.headroom_bytes,
        "fits": sizing.fits,
    }


def floor_json(found: Floor, sizing: Sizing, then: str | None) -> dict[str, Any]:
    """The sharding floor and what lies beyond it."""
    return {
        "bytes_per_gpu": found.bytes_per_gpu,
        "terms": stage_terms(found.stage, sizing, needed=True),
        "fits": found.bytes_per_gpu <= sizing.usable_bytes,
        "helps_until_gpus": found.helps_until_gpus,
        "then": then,
    }


def lever_json(lever: Lever, pinned: Mapping[str, Any]) -> dict[str, Any]:
    """One lever; `pinned` are the keys that keep the layout it was sized on, where the request gave none."""
    change = {**pinned, **lever.change}
    if pinned:
        change["gpus"] = change["tp"] * change["pp"] * change["cp"] * change["dp"]
    return {
        "lever": lever.text,
        "touches": lever.touches,
        "change": change,
        "saves_bytes_per_gpu": lever.saves_bytes_per_gpu,
        "peak_bytes": lever.peak_bytes,
        "costs": lever.costs,
    }


def alternative_json(made: Plan, sizing: Sizing, lever: str, tokens: int | None) -> dict[str, Any]:
    """Another way to run it, and what it changes against the recommended one."""
    timed = short_time(made, tokens)
    return {
        "gpus": made.gpus,
        "nodes": made.nodes,
        "layout": layout_json(sizing.layout, sizing.run),
        "lever": lever,
        "peak_bytes": sizing.peak.device_bytes,
        "headroom_bytes": sizing.headroom_bytes,
        "step_time_s": timed["step_s"],
        "tokens_per_s": timed["tokens_per_s"],
        "days": timed["days"],
        "cost": timed["cost"],
    }
