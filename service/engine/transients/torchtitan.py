"""How torchtitan computes the loss, and what pipelines add to FSDP2."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine import pipeline
from service.engine.elementwise import Int, ceil_div, where
from service.engine.ledger import Bundle, Dim, Row
from service.engine.stage import Prepared, StageView
from service.engine.timeline import ALWAYS, during
from service.engine.transients.parts import bundle, elements, working

LOSS = "torchtitan components/loss.py: cross_entropy(pred.flatten(0, 1).float(), labels); chunked; compiled"
PIPELINE = "torch distributed/fsdp/_fully_shard: no reduction before the last micro-batch, unsharded_accumulated_grad"
STAGE = "torch distributed/pipelining/stage.py: args_recv_info, grad_recv_info, fwd_cache"
#: slices of the chunked loss
SLICES = 8


def logits(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Logits-sized tensors beside the saved one, at the loss and in the first backward operation.

    full: the caller still holds the 16-bit logits and their fp32 copy when the gradient is formed (with the saved
    log-softmax 14 bytes an entry). Compiled: 16-bit logits and their gradient. vocab-parallel: 20 bytes a local entry,
    DTensor's loss-parallel kernels are eager and out of place.
    """
    scope, run = prepared.scope, prepared.run
    last = where(stage.last, 1, 0)
    forward: list[Row]
    if run.loss in ("chunked", "fused"):
        forward = backward = list(_slices(prepared))
    elif prepared.kernels.compiled_loss:
        forward = []
        backward = [_of_logits(prepared, "gradient of the logits", scope.compute, "softmax minus one-hot")]
    else:
        forward = [
            _of_logits(prepared, "logits", scope.compute, "output of the head, held by the caller"),
            _of_logits(prepared, "logits upcast", "fp32", "the loss computes in fp32"),
        ]
        backward = [*forward, _of_logits(prepared, "gradient of the logits", "fp32", "softmax minus one-hot")]
        if run.loss == "vocab-parallel":
            backward += list(_loss_parallel(prepared))
    yield bundle("logits", tuple(forward), during("loss"), last)
    yield bundle("gradients of the logits", tuple(backward), during("first_backward"), last)


def _of_logits(prepared: Prepared, name: str, dtype: str, why: str) -> Row:
    scope = prepared.scope
    return working(name, "loss", (scope.tokens, scope.vocab), dtype, why, LOSS)


def _loss_parallel(prepared: Prepared) -> Iterator[Row]:
    scope = prepared.scope
    yield _of_logits(prepared, "shifted logits", "fp32", "less their largest, out of place")
    yield _of_logits(prepared, "gradient redistributed", scope.compute, "cast back to the head's dtype")
    for name in ("gathered head input", "its gradient"):
        yield working(name, "head", (scope.tokens, scope.hidden), scope.compute, "sequence parallelism ends here", LOSS)


def _slices(prepared: Prepared) -> Iterator[Row]:
    scope = prepared.scope
    tokens = Dim("b·s/8", ceil_div(scope.tokens.size, SLICES), scope.tokens.sharded_by)
    parts = (("logits", scope.compute), ("logits upcast", "fp32"), ("log-softmax", "fp32"), ("gradient", "fp32"))
    for name, dtype in parts:
        yield working(f"{name} of a slice", "loss", (tokens, scope.vocab), dtype, "one slice at a time", LOSS)
    table = Dim("V", scope.vocab.size, ("tp",))
    for name, dtype in (("head gradient", scope.compute), ("head gradient to reduce", "fp32")):
        yield working(name, "head", (scope.hidden, table), dtype, "slices add to it", LOSS)


def accumulated_gradients(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Unsharded gradients in the reduction's dtype, which a pipeline adds up until its last micro-batch."""
    layout, recipe = prepared.layout, prepared.recipe
    if layout.shard != "parameters" or recipe.frozen_base:
        return
    pipelined: Int = where(layout.pp > 1, where(layout.shard_ranks("parameters") > 1, 1, 0), 0)
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last")
    why = "FSDP reduces once a step under a pipeline"
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        unit = Dim("P_layer", elements(prepared, block), ("tp",))
        row = working("accumulated unsharded gradients", kind.name, (unit,), recipe.gradients[-1], why, PIPELINE)
        yield bundle("accumulated gradients", (row,), alive, pipelined * layers)


def pipeline_buffers(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """What torch's pipeline stage holds of activations on their way: receive buffers for every micro-batch of the step,
    made once, and the outputs of the micro-batches in flight."""
    scope, layout, run = prepared.scope, prepared.layout, prepared.run
    received = where(stage.first, 0, run.micro_batches) + where(stage.last, 0, run.micro_batches)
    outputs = pipeline.in_flight(layout, run, stage.number, 0)
    why = "activations in, gradients in, outputs that backward starts from"
    row = working("pipeline buffer", "pipeline", (scope.tokens_sp, scope.hidden), scope.residual, why, STAGE)
    yield bundle("pipeline receive buffers", (row,), ALWAYS, where(layout.pp > 1, received, 0))
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last")
    yield bundle("stage outputs", (row,), alive, where(layout.pp > 1, outputs, 0))
