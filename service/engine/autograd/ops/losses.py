"""The loss."""

from __future__ import annotations

from service.engine.autograd.ops.casts import fp32
from service.engine.autograd.ops.layout import one_kernel
from service.engine.autograd.storage import Tensor


def cross_entropy(logits: Tensor, label: str = "log-softmax of the logits", *, targets: Tensor) -> Tensor:
    """log_softmax in the dtype of the logits, then nll_loss (in fp32 under autocast), over (tokens, vocabulary)."""
    tape = logits.tape
    logs = one_kernel(logits, "log_softmax", label, saves="result")
    logs = fp32(logs, "nll_loss")
    slots = [tape.save(logs, "nll_loss"), tape.save(targets, "nll_loss")]
    loss = tape.new((), logs.dtype, "loss")
    slots.append(tape.save(tape.new((), logs.dtype, "total weight of the loss"), "nll_loss"))
    shape, dtype = logs.shape, logs.dtype
    loss.node = tape.node(
        "nll_loss", (logs,), slots, lambda grads, saved: [tape.new(shape, dtype, "gradient of the log-softmax")]
    )
    return loss
