"""Temporaries of the optimizer step."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import Int, where
from service.engine.ledger import BYTES_OF, Bundle, Dim
from service.engine.stage import Prepared, StageView
from service.engine.timeline import during
from service.engine.transients.parts import bundle, working

FOREACH = "torch.optim adamw foreach: the list of sqrt(v) in the moments' dtype"


def optimizer_temporaries(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """`foreach` optimizers make one list of temporaries as large as the parameters of this rank."""
    if prepared.run.optimizer_impl != "foreach" or "adamw" not in prepared.recipe.optimizer:
        return
    if "optimizer" in prepared.run.offload:
        return
    share = local_parameters(prepared, stage)
    dtype = prepared.recipe.master or prepared.recipe.weights
    why = "one operation over all parameters at once needs all of its results at once"
    row = working("foreach temporary", "optimizer", (Dim("P", share, ("tp", "pp", "dp·cp")),), dtype, why, FOREACH)
    yield bundle("optimizer temporaries", (row,), during("optimizer_step"))


def local_parameters(prepared: Prepared, stage: StageView) -> Int:
    """Trainable parameters that the optimizer of this rank updates."""
    size = BYTES_OF[prepared.recipe.master or prepared.recipe.weights]
    term = "master_weights" if prepared.recipe.master else "gradients"
    per_element = size if prepared.recipe.master else prepared.recipe.gradient_bytes
    total: Int = 0
    pieces = [
        (prepared.outside_state[0], where(stage.first, 1, 0)),
        (prepared.outside_state[1], where(stage.last, 1, 0)),
        *zip(prepared.layer_state, stage.layers, strict=True),
    ]
    for state, copies in pieces:
        for row in state.of(term):  # type: ignore[arg-type]
            total = total + row.bytes * copies // per_element
    return total
