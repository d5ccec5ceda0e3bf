"""Logits and their gradients: usually the peak when layers are recomputed."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import ceil_div, where
from service.engine.ledger import Bundle, Dim, Row
from service.engine.stage import Prepared, StageView
from service.engine.timeline import during
from service.engine.transients.parts import bundle, working

LOSS = "torch 2.13 _log_softmax, nll_loss and their backward"
#: torchtitan and TRL compute the loss in 8 slices of the tokens
LOSS_SLICES = 8


def logits(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Logits-sized tensors alive besides the saved one, at the loss and in the first backward operation.

    full: 16-bit logits and their fp32 copy (with the saved log-softmax 10 bytes an entry), then the gradients of
    log-softmax and of the fp32 logits (12). vocab-parallel: this rank's logits, worked on in place.
    """
    scope, run = prepared.scope, prepared.run
    if prepared.architecture.head == "classification":
        return
    shape = (scope.tokens, scope.vocab)
    last = where(stage.last, 1, 0)
    upcast = scope.compute != run.logits_dtype
    if run.loss == "full":
        forward = [working("logits", "head", shape, scope.compute, "output of the head", LOSS)]
        if upcast:
            forward.append(working("logits upcast", "loss", shape, run.logits_dtype, "the loss computes in it", LOSS))
        backward = [
            working(f"gradient of the {what}", "loss", shape, run.logits_dtype, "softmax minus one-hot", LOSS)
            for what in ("log-softmax", "logits")
        ]
    elif run.loss == "vocab-parallel":
        in_place = "cross-entropy" in run.kernels
        why = "this rank's slice of the vocabulary"
        forward = [] if in_place else [working("logits", "head", shape, scope.compute, why, LOSS)]
        backward = forward
    elif run.loss == "chunked" and prepared.kernels.slices_whole_logits:
        forward = list(_sliced_logits(prepared))
        backward = [working("gradient of the logits", "loss", shape, scope.compute, "softmax minus one-hot", LOSS)]
    else:
        forward = backward = list(_sliced_logits(prepared))
    yield bundle("logits", tuple(forward), during("loss"), last)
    yield bundle("gradients of the logits", tuple(backward), during("first_backward"), last)


def _sliced_logits(prepared: Prepared) -> Iterator[Row]:
    scope = prepared.scope
    tokens = Dim("b·s", ceil_div(scope.tokens.size, LOSS_SLICES), scope.tokens.sharded_by)
    for name, dtype in (("logits slice", scope.compute), ("logits slice upcast", "fp32"), ("its gradient", "fp32")):
        yield working(name, "loss", (tokens, scope.vocab), dtype, "one slice of the tokens at a time", LOSS)
