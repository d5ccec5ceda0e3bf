"""Gathered parameters and reduction buffers of sharded data parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import maximum, minimum, where
from service.engine.ledger import Bundle, Dim
from service.engine.stage import IN_LAYER_BACKWARD, Prepared, StageView, heaviest_kind
from service.engine.timeline import during
from service.engine.transients.optimizer import local_parameters
from service.engine.transients.parts import bundle, elements, working

FSDP2 = "torch 2.13 torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"
FSDP1 = "torch 2.13 torch/distributed/fsdp/_flat_param.py, limit_all_gathers"
ZERO = "DeepSpeed runtime/zero: config default reduce_bucket_size 5e8"
#: DeepSpeed's default bucket of the reduction, in elements
REDUCE_BUCKET = 500_000_000


def gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Parameters that sharded data parallelism brings together to compute with, and their unsharded gradients.

    FSDP2: the unit in use and the next one being fetched; in backward also its gradients and the reduce-scatter's
    input in the reduction's dtype. The last unit (final norm and head) stays gathered from forward to backward.
    """
    layout, recipe = prepared.layout, prepared.recipe
    if layout.shard != "parameters" or (isinstance(layout.data_ranks, int) and layout.data_ranks == 1):
        return
    sharded = where(layout.shard_ranks("parameters") > 1, 1, 0)
    source = FSDP2 if prepared.run.fsdp_version == 2 else FSDP1
    head = Dim("P_head", elements(prepared, prepared.blocks.head), ("tp",))
    held = during("forward_end", "loss", "first_backward", "layer_backward_first")
    why = "the last unit is used again at once in backward, so it is not split up between"
    row = working("gathered head", "head", (head,), recipe.compute, why, source)
    yield bundle("gathered head", (row,), held, where(stage.last, sharded, 0))
    for kind, block, chosen in zip(
        prepared.kinds, prepared.blocks.layers, heaviest_kind(prepared, stage), strict=True
    ):  # fmt: skip
        unit = Dim("P_layer", elements(prepared, block), ("tp",))
        rows = [
            working(f"gathered layer {when}", kind.name, (unit,), recipe.compute, "matrix products read it", source)
            for when in ("in use", "fetched ahead")
        ]
        if not recipe.frozen_base:
            reduce_dtype = recipe.gradients[-1]
            rows += [
                working("unsharded gradients", kind.name, (unit,), recipe.compute, "backward writes them whole", source),
                working("reduce-scatter input", kind.name, (unit,), reduce_dtype, "the reduction reads a copy", source),
            ]  # fmt: skip
        yield bundle("gathered layers", tuple(rows), IN_LAYER_BACKWARD, chosen * sharded)


def kept_gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Layers that stay gathered from forward to backward when they are not split up again in between."""
    layout = prepared.layout
    if layout.shard != "parameters" or prepared.run.reshard_after_forward:
        return
    sharded = where(layout.shard_ranks("parameters") > 1, 1, 0)
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first")
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        unit = Dim("P_layer", elements(prepared, block), ("tp",))
        why = "reshard_after_forward is off: backward, or the next micro-batch, finds them gathered"
        row = working("layer kept gathered", kind.name, (unit,), prepared.recipe.compute, why, FSDP2)
        yield bundle("layers kept gathered", (row,), alive, layers * sharded)


def buckets(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Buffers of the gradient reduction: DeepSpeed's bucket, DDP's copies."""
    recipe, layout = prepared.recipe, prepared.layout
    if prepared.stack.name == "deepspeed" and layout.shard != "none":
        size = minimum(REDUCE_BUCKET, maximum(local_parameters(prepared, stage), 1))
        row = working(
            "reduce bucket", "zero", (Dim("bucket", size),), recipe.compute, "gradients are reduced from it", ZERO
        )
        yield bundle("reduce bucket", (row,), during("layer_backward_first", "layer_backward_last", "backward_end"))
