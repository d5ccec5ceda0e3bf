"""Casts: asked for by the code, or made by autocast."""

from __future__ import annotations

from service.engine.autograd.ops.layout import layout_of
from service.engine.autograd.storage import ITEMSIZE, Tensor

#: torch.autocast for CUDA runs these in fp32 (aten/src/ATen/autocast_mode.h, fp32 lists)
FP32_UNDER_AUTOCAST = frozenset(
    {"pow", "rsqrt", "softmax", "log_softmax", "layer_norm", "sum", "nll_loss", "exp", "expm1", "softplus"}
)


def to(x: Tensor, dtype: str, label: str = "") -> Tensor:
    """Cast; the same tensor when it has the dtype already."""
    if x.dtype == dtype:
        return x
    kind = "cast" if x.parameter is not None and x.storage is None else "activation"
    out = x.tape.new(x.shape, dtype, label or f"copy in {dtype}", strides=layout_of(x, x.shape), kind=kind)
    if x.needs_grad:
        old = x.dtype
        out.node = x.tape.node("to", (x,), [], lambda grads, saved: [_cast(grads[0], old)])
    return out


def _cast(grad: Tensor | None, dtype: str) -> Tensor | None:
    if grad is None or grad.dtype == dtype:
        return grad
    return grad.tape.new(grad.shape, dtype, "gradient cast back", strides=layout_of(grad, grad.shape))


def autocast(x: Tensor, label: str = "") -> Tensor:
    """What autocast does to an argument of a matrix product: cast fp32 tensors, weights once per forward."""
    half = x.tape.autocast
    if half is None or x.dtype != "fp32":
        return x
    if x.parameter is None or not x.needs_grad or x.storage is not None:
        return to(x, half, label or f"input cast to {half}")
    cached = x.tape.cast_weight(x, half)
    if cached is None:
        cached = to(x, half, f"{half} copy of {x.parameter.partition(':')[2] or x.parameter}")
        x.tape.cache_cast(x, cached)
    return cached


def fp32(x: Tensor, operation: str) -> Tensor:
    """What autocast does to an argument of an operation on its fp32 list."""
    if x.tape.autocast is not None and operation in FP32_UNDER_AUTOCAST and ITEMSIZE[x.dtype] == 2:
        return to(x, "fp32", "copy in fp32")
    return x
