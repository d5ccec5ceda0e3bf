"""Buffers of DeepSpeed's ZeRO optimizers and of its pipeline engine."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine import pipeline
from service.engine.elementwise import Int, maximum, minimum, where
from service.engine.ledger import BYTES_OF, Bundle, Dim, total_bytes
from service.engine.stage import Prepared, StageView
from service.engine.timeline import ALWAYS, during
from service.engine.transients.optimizer import local_parameters
from service.engine.transients.parts import bundle, working

BUCKET = "DeepSpeed runtime/zero: config default reduce_bucket_size 5e8"
STEP = "DeepSpeed runtime/zero/stage_1_and_2.py, runtime/fp16: single_partition_of_fp32_groups[i].grad"
PIPELINE = "DeepSpeed runtime/pipe/engine.py: pipe_buffers['outputs'], one per micro-batch in flight"
#: DeepSpeed's default bucket of the reduction, in elements
REDUCE_BUCKET = 500_000_000
#: parameters that ZeRO-3 updates at once (config default sub_group_size)
SUB_GROUP = 1_000_000_000


def buckets(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """The buffer from which gradients are reduced: while backward runs, or, under a pipeline, once after it
    (runtime/pipe/engine.py _exec_reduce_grads)."""
    if prepared.layout.shard == "none":
        return
    whole = local_parameters(prepared, stage) * prepared.layout.shard_ranks(prepared.layout.shard)
    size = minimum(REDUCE_BUCKET, maximum(whole, 1))
    dims = (Dim("bucket", size),)
    row = working("reduce bucket", "zero", dims, prepared.recipe.compute, "gradients are reduced from it", BUCKET)
    one_stage = where(prepared.layout.pp > 1, 0, 1)
    yield bundle("reduce bucket", (row,), (0, 0, 0, one_stage, one_stage, 1, 0))


def step_gradients(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """fp32 gradients of the local shard, which the step makes from the 16-bit ones.

    Megatron-DeepSpeed's partitioned optimizer was seen to keep them from step to step (BigScience logs and tables);
    otherwise they are there during the step only, under ZeRO-3 one sub-group at a time.
    """
    recipe, layout = prepared.recipe, prepared.layout
    if recipe.master is None or recipe.gradients[-1] == "fp32" or "optimizer" in prepared.run.offload:
        return
    size: Int = 0
    embedding, head, tied = prepared.outside_state
    pieces = [
        (embedding, where(stage.first, 1, 0)),
        (head, where(stage.last, 1, 0)),
        *zip(prepared.layer_state, stage.layers, strict=True),
    ]
    if prepared.blocks.tied:
        pieces.append((tied, where(stage.first, 0, where(stage.last, 1, 0))))
    for state, copies in pieces:
        size = size + total_bytes(state.of("master_weights")) * copies // BYTES_OF[recipe.master]
    kept = prepared.run.vocab_multiple is not None and layout.shard != "none"
    if layout.shard == "parameters":
        size = minimum(size, SUB_GROUP)
    shard = (Dim("P", size, ("tp", "pp", "dp·cp")),)
    row = working("fp32 gradients of the step", "zero", shard, "fp32", "the update is computed in fp32", STEP)
    yield bundle("step gradients", (row,), ALWAYS if kept else during("optimizer_step"))


def pipeline_outputs(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Outputs of the stage for every micro-batch in flight, which backward starts from."""
    scope, layout = prepared.scope, prepared.layout
    in_flight = pipeline.in_flight(layout, prepared.run, stage.number, 0)
    row = working(
        "stage output", "pipeline", (scope.tokens_sp, scope.hidden), scope.residual,
        "backward of the stage starts from it", PIPELINE,
    )  # fmt: skip
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last")
    yield bundle("stage outputs", (row,), alive, where(layout.pp > 1, in_flight, 0))
