"""16-bit copies of fp32 weights."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import where
from service.engine.ledger import Bundle, Dim
from service.engine.stage import Prepared, StageView
from service.engine.timeline import during
from service.engine.transients.parts import bundle, elements, working

AUTOCAST = "torch.autocast weight cache: one 16-bit copy per fp32 matrix weight until the context exits"


def weight_casts(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """16-bit copies of fp32 matrix weights that autocast makes and caches until forward ends."""
    recipe, layout = prepared.recipe, prepared.layout
    if not recipe.casts or recipe.frozen_base or layout.shard == "parameters":
        return
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first")
    why = "matrix products run in 16 bits while the stored weights are fp32"
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        copy = Dim("P_layer", elements(prepared, block), ("tp",))
        row = working("16-bit weight copies", kind.name, (copy,), recipe.compute, why, AUTOCAST)
        yield bundle("weight copies of layers", (row,), alive, layers)
    table = Dim("h·V", prepared.scope.vocab.size * prepared.architecture.hidden_size, ("tp",))
    row = working("16-bit weight copy of the head", "head", (table,), recipe.compute, why, AUTOCAST)
    yield bundle("weight copy of the head", (row,), alive, where(stage.last, 1, 0))
