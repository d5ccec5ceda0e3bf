"""Every change to a plan worth trying, whether or not it helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from service.engine.layout import Shard
from service.engine.question import Plan, plan
from service.engine.run import Recompute

#: How much a lever asks of whoever pulls it, the least first.
FREE, CHEAP, MODERATE, EXPENSIVE, ANOTHER_RUN = range(5)


class Option(NamedTuple):
    """A changed plan: what it is called, its request keys, what it costs in words, and how much it asks."""

    text: str
    word: str
    change: dict[str, Any]
    costs: str
    effort: int
    plan: Plan


def options(made: Plan) -> Iterator[Option]:
    """Levers on the run's shape and kernels, on recomputation, on the layout and on state."""
    yield from _kernel_options(made)
    yield from _shape_options(made)
    yield from _recompute_options(made)
    yield from _layout_options(made)
    yield from _state_options(made)
    yield from _offload_options(made)


def _again(made: Plan, **changed: Any) -> Plan:
    """The same plan with other degrees, another recompute policy or another level of sharding."""
    layout = made.layout
    degree = layout.shard_degree
    values: dict[str, Any] = {
        "tp": int(layout.tp),
        "pp": int(layout.pp),
        "cp": int(layout.cp),
        "ep": int(layout.ep),
        "etp": min(int(layout.etp), int(changed.get("tp", layout.tp))),
        "dp": int(layout.dp),
        "vpp": layout.vpp,
        "shard": _shard(made),
        "shard_degree": None if degree is None else int(degree),
        "recompute": made.run.recompute,
        "micro_batch": int(made.run.micro_batch),
        "uneven": layout.stage_layers is not None,
    }
    return plan(made.question, **(values | changed))


def _shard(made: Plan) -> Shard:
    """The level of sharding; where one rank has nothing to share, the one that more ranks would take."""
    if int(made.layout.data_ranks) > 1:
        return made.layout.shard
    return made.question.shard or made.question.stack.shard


def pinned(made: Plan) -> dict[str, Any]:
    """Request keys that give this plan's layout, for a change to be sent back with when none was given."""
    return {**_degrees(made), "micro_batch": int(made.run.micro_batch)}


def _degrees(made: Plan) -> dict[str, Any]:
    """The plan's own layout, so that a change sent back keeps the layout that it was sized on."""
    layout, recompute = made.layout, made.run.recompute
    kept: dict[str, Any] = {name: int(getattr(layout, name)) for name in ("tp", "pp", "cp", "ep", "dp")}
    kept["shard"] = _shard(made)
    if int(layout.vpp) > 1:
        kept["vpp"] = int(layout.vpp)
    if made.question.architecture.moe is not None:
        kept["etp"] = int(layout.etp)
    if layout.stage_layers is not None:
        kept["stage_layers"] = list(layout.stage_layers)
    if layout.shard_degree is not None:
        kept["shard_degree"] = int(layout.shard_degree)
    if recompute.kind != "none":
        layers = recompute.full_layers
        kept["recompute"] = recompute.kind if layers is None else {"full_layers": layers}
    return kept


def _with_run(made: Plan, **changed: Any) -> Plan:
    question = replace(made.question, run=replace(made.question.run, **changed))
    return replace(made, question=question, run=replace(made.run, **changed))


def _with_recipe(made: Plan, **changed: Any) -> Plan:
    return replace(made, question=replace(made.question, recipe=replace(made.question.recipe, **changed)))


def _kernel_options(made: Plan) -> Iterator[Option]:
    if made.run.attention == "eager":
        yield Option(
            "attention eager → flash", "attention=flash", {"attention": "flash"}, "nothing", FREE,
            _with_run(made, attention="flash"),
        )  # fmt: skip
    if made.run.loss in ("full", "vocab-parallel"):
        yield Option(
            f"loss {made.run.loss} → fused", "loss=fused", {"loss": "fused"},
            "a fused linear and cross-entropy kernel must know this head", FREE, _with_run(made, loss="fused"),
        )  # fmt: skip
    if int(made.layout.tp) > 1 and not made.layout.sp and made.question.sp is not False:
        question = replace(made.question, sp=True)
        yield Option(
            "sp false → true", "sp=true", {"sp": True}, "the same bytes travel in other collectives", FREE,
            replace(made, question=question, layout=replace(made.layout, sp=True)),
        )  # fmt: skip


def _shape_options(made: Plan) -> Iterator[Option]:
    batch, sequence = int(made.run.micro_batch), made.run.sequence_length
    if batch > 1:
        smaller = batch // 2
        yield Option(
            f"micro_batch {batch} → {smaller}", f"micro_batch={smaller}", {"micro_batch": smaller},
            "smaller matrix products, more micro-batches for the same global batch", CHEAP,
            _again(made, micro_batch=smaller),
        )  # fmt: skip
    if sequence >= 2048:
        half = sequence // 2
        yield Option(
            f"sequence_length {sequence} → {half}", f"sequence_length={half}", {"sequence_length": half},
            "the model sees shorter contexts", ANOTHER_RUN, _with_run(made, sequence_length=half),
        )  # fmt: skip


RECOMPUTE = {
    "selective": ("a part of each layer runs twice", CHEAP),
    "full": ("every layer's forward runs twice", MODERATE),
}


def _recompute_options(made: Plan) -> Iterator[Option]:
    allowed, now = made.question.stack.recomputes, made.run.recompute
    if now.kind not in allowed:
        return
    for kind in allowed[allowed.index(now.kind) + 1 :]:
        costs, effort = RECOMPUTE[kind]
        changed = _again(made, recompute=Recompute(kind=kind))  # type: ignore[arg-type]
        yield Option(f"recompute {now.text} → {kind}", f"recompute={kind}", {"recompute": kind}, costs, effort, changed)


LAYOUT = {
    "tp": "gathers and scatters inside every layer",
    "cp": "keys and values travel between the ranks of a sequence",
    "pp": "a pipeline bubble; stages wait for the first and the last micro-batch",
}


def _layout_options(made: Plan) -> Iterator[Option]:
    layout, question = made.layout, made.question
    dp, node = int(layout.dp), max(question.gpu.gpus_per_node, question.gpu.scale_up_domain)
    for name, costs in LAYOUT.items():
        degree = int(getattr(layout, name))
        if name not in question.stack.degrees or (name == "tp" and degree * 2 > node):
            continue
        if question.stage_layers is not None and name == "pp":
            continue
        fewer = dp // 2 if dp % 2 == 0 else dp
        change = _degrees(made) | {"dp": fewer, name: degree * 2}
        if name == "pp":
            change = {key: value for key, value in change.items() if key not in ("vpp", "stage_layers")}
        if "etp" in change:
            change["etp"] = min(change["etp"], change["tp"])
        change["gpus"] = change["tp"] * change["pp"] * change["cp"] * fewer
        more = fewer == dp
        where = f"on twice the GPUs ({change['gpus']})" if more else "on the same GPUs"
        other = _again(made, **{name: degree * 2, "dp": fewer}, **({"vpp": 1} if name == "pp" else {}))
        yield Option(
            f"{name} {degree} → {degree * 2} {where}", f"{name}={degree * 2}", change, costs,
            EXPENSIVE if more else MODERATE, other,
        )  # fmt: skip


def _state_options(made: Plan) -> Iterator[Option]:
    layout, question = made.layout, made.question
    levels = question.stack.shards
    if int(layout.data_ranks) > 1:
        for level in levels[levels.index(layout.shard) + 1 :] if layout.shard in levels else ():
            yield Option(
                f"shard {layout.shard} → {level}", f"shard={level}", {"shard": level},
                "state is gathered and scattered every step", CHEAP, _again(made, shard=level),
            )  # fmt: skip
    gpus, dp = made.gpus * 2, int(layout.dp) * 2
    change = _degrees(made) | {"gpus": gpus, "dp": dp}
    shard = change["shard"]
    yield Option(
        f"gpus {made.gpus} → {gpus}", f"gpus={gpus}", change, "twice the GPUs, for twice the tokens a step", EXPENSIVE,
        _again(made, dp=dp, shard=shard),
    )  # fmt: skip
    if question.recipe.optimizer == "adamw":
        yield Option(
            "optimizer adamw → adamw-8bit", "optimizer=adamw-8bit", {"optimizer": "adamw-8bit"},
            "quantised moments: a small risk for the loss curve", MODERATE,
            _with_recipe(made, optimizer="adamw-8bit"),
        )  # fmt: skip
    if question.recipe.method == "full":
        yield Option(
            "method full → lora", "method=lora", {"method": "lora"},
            "only adapters learn: for fine-tuning, not for pre-training", ANOTHER_RUN,
            _with_recipe(made, method="lora"),
        )  # fmt: skip


def _offload_options(made: Plan) -> Iterator[Option]:
    for what, costs in (
        ("optimizer", "states cross to host memory every step"),
        ("activations", "saved tensors cross to host memory and back in every micro-batch"),
    ):
        if what in made.run.offload:
            continue
        kept = sorted(made.run.offload | {what})
        yield Option(
            f"offload {what}", f"offload={','.join(kept)}", {"offload": kept},
            f"{costs}; how much slower that is, is not modelled", EXPENSIVE,
            _with_run(made, offload=frozenset(kept)),
        )  # fmt: skip
