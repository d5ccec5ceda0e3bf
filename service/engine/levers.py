"""What to pull first: each lever sized by the engine, with what it touches and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from service.engine.question import Plan, plan, refusals
from service.engine.run import Recompute
from service.engine.size import Sizing

Touches = Literal["state", "activations", "state and activations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change to a request. `change` holds request keys that can be sent back as they are."""

    text: str
    touches: Touches
    change: dict[str, Any]
    saves_bytes_per_gpu: int
    peak_bytes: int
    costs: str


def levers(made: Plan, sizing: Sizing) -> list[Lever]:
    """Levers that save memory at the peak of the fullest stage, the most useful first."""
    now = sizing.peak.needed_bytes
    found = []
    for text, touches, change, costs, other in options(made):
        if any(refusals(other.question, other.layout)):
            continue
        then = other.size().peak
        if then.needed_bytes < now:
            found.append(
                Lever(
                    text=text,
                    touches=touches,
                    change=change,
                    saves_bytes_per_gpu=now - then.needed_bytes,
                    peak_bytes=then.device_bytes,
                    costs=costs,
                )
            )
    return sorted(found, key=lambda lever: -lever.saves_bytes_per_gpu)


Option = tuple[str, Touches, dict[str, Any], str, Plan]


def options(made: Plan) -> Iterator[Option]:
    """Every change worth trying on this plan, whether or not it helps."""
    yield from _shape_options(made)
    yield from _recompute_options(made)
    yield from _layout_options(made)
    yield from _state_options(made)


def _again(made: Plan, **changed: Any) -> Plan:
    """The same plan with other degrees or another recompute policy."""
    layout = made.layout
    values: dict[str, Any] = {
        "tp": int(layout.tp),
        "pp": int(layout.pp),
        "cp": int(layout.cp),
        "ep": int(layout.ep),
        "dp": int(layout.dp),
        "shard": layout.shard,
        "recompute": made.run.recompute,
        "micro_batch": int(made.run.micro_batch),
    }
    return plan(made.question, **(values | changed))


def _degrees(made: Plan) -> dict[str, Any]:
    """The plan's own degrees, so that a change sent back keeps the layout that it was sized on."""
    return {name: int(getattr(made.layout, name)) for name in ("tp", "pp", "cp", "ep", "dp")}


def _with_run(made: Plan, **changed: Any) -> Plan:
    return replace(made, run=replace(made.run, **changed))


def _shape_options(made: Plan) -> Iterator[Option]:
    batch, sequence = int(made.run.micro_batch), made.run.sequence_length
    if batch > 1:
        smaller = batch // 2
        yield (
            f"micro_batch {batch} → {smaller}", "activations", {"micro_batch": smaller},
            "more micro-batches a step for the same global batch, smaller matrix products",
            _again(made, micro_batch=smaller),
        )  # fmt: skip
    if sequence >= 2048:
        half = sequence // 2
        yield (
            f"sequence_length {sequence} → {half}", "activations", {"sequence_length": half},
            "the model sees shorter contexts", _with_run(made, sequence_length=half),
        )  # fmt: skip
    if made.run.attention == "eager":
        yield (
            "attention eager → flash", "activations", {"attention": "flash"}, "nothing: faster as well",
            _with_run(made, attention="flash"),
        )  # fmt: skip
    if made.run.loss in ("full", "vocab-parallel"):
        yield (
            f"loss {made.run.loss} → fused", "activations", {"loss": "fused"},
            "a fused linear + cross-entropy kernel must support this head", _with_run(made, loss="fused"),
        )  # fmt: skip


RECOMPUTE_COST = {
    "selective": "the attention core is computed twice: a few percent of the FLOPs",
    "full": "every layer's forward runs twice: about a third more FLOPs",
}


def _recompute_options(made: Plan) -> Iterator[Option]:
    allowed = made.question.stack.recomputes
    now = made.run.recompute
    for kind in allowed[allowed.index(now.kind) + 1 :] if now.kind in allowed else ():
        change = {"recompute": kind}
        yield (
            f"recompute {now.text} → {kind}", "activations", change, RECOMPUTE_COST[kind],
            _again(made, recompute=Recompute(kind=kind)),  # type: ignore[arg-type]
        )  # fmt: skip


def _layout_options(made: Plan) -> Iterator[Option]:
    layout, stack = made.layout, made.question.stack
    tp, pp, cp, dp = (int(degree) for degree in (layout.tp, layout.pp, layout.cp, layout.dp))
    node = made.question.gpu.gpus_per_node
    for name, degree, touches, costs in (
        ("tp", tp, "state and activations", "all-gathers and reduce-scatters inside every layer"),
        ("cp", cp, "activations", "keys and values travel between the ranks of a sequence"),
        ("pp", pp, "state", "a pipeline bubble; every stage waits for the first and the last micro-batch"),
    ):
        if name not in stack.degrees or (name == "tp" and degree * 2 > node):
            continue
        fewer = dp // 2 if dp % 2 == 0 else dp
        change = _degrees(made) | {"dp": fewer, name: degree * 2}
        change["gpus"] = change["tp"] * change["pp"] * change["cp"] * fewer
        where = "on the same GPUs" if fewer != dp else f"on twice the GPUs ({change['gpus']})"
        other = _again(made, **{name: degree * 2, "dp": fewer})
        yield f"{name} {degree} → {degree * 2} {where}", touches, change, costs, other  # type: ignore[misc]


def _state_options(made: Plan) -> Iterator[Option]:
    layout, question = made.layout, made.question
    ranks = int(layout.data_ranks)
    levels = question.stack.shards
    if ranks > 1 and layout.shard in levels and layout.shard != levels[-1]:
        level = levels[-1]
        yield (
            f"shard {layout.shard} → {level}", "state", {"shard": level}, "state is gathered and scattered every step",
            _again(made, shard=level),
        )  # fmt: skip
    if ranks > 1:
        gpus, dp = made.gpus * 2, int(layout.dp) * 2
        change = _degrees(made) | {"gpus": gpus, "dp": dp}
        yield f"gpus {made.gpus} → {gpus}", "state", change, "twice the GPUs", _again(made, dp=dp)
    if question.recipe.optimizer == "adamw":
        asked = replace(question.recipe, optimizer="adamw-8bit")
        yield (
            "optimizer adamw → adamw-8bit", "state", {"optimizer": "adamw-8bit"},
            "quantised moments: a small risk for the loss curve",
            replace(made, question=replace(question, recipe=asked)),
        )  # fmt: skip
