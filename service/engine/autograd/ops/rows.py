"""Softmax, norms and other reductions of a row."""

from __future__ import annotations

from service.engine.autograd.ops.casts import fp32, to
from service.engine.autograd.ops.layout import like, one_kernel
from service.engine.autograd.ops.views import expand
from service.engine.autograd.storage import Tensor


def mean(x: Tensor, label: str = "mean") -> Tensor:
    """Mean over the last dimension, kept as 1."""
    out = x.tape.new((*x.shape[:-1], ()), x.dtype, label)
    if x.needs_grad:
        shape, dtype, tape = x.shape, x.dtype, x.tape
        out.node = tape.node("mean", (x,), [], lambda grads, saved: [tape.new(shape, dtype, "gradient of a mean")])
    return out


def softmax(x: Tensor, label: str, *, dtype: str | None = None) -> Tensor:
    """Keeps its result; with `dtype` the input is cast first."""
    x = fp32(x if dtype is None else to(x, dtype, "scores cast for softmax"), "softmax")
    return one_kernel(x, "softmax", label, saves="result")


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, label: str) -> Tensor:
    """One kernel: keeps its input, and mean and 1/σ of each row in fp32."""
    x = fp32(x, "layer_norm")
    tape = x.tape
    slots = [tape.save(x, "layer_norm")] if x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:
        row = (*x.shape[:-1], ())
        slots += [tape.save(tape.new(row, "fp32", f"{what} of {label}"), "layer_norm") for what in ("mean", "1/σ")]
        leaves = [leaf for leaf in (weight, bias) if leaf is not None]
        if weight is not None and weight.storage is not None:
            slots.append(tape.save(weight, "layer_norm"))

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            result: list[Tensor | None] = [like(saved[0], "gradient of layer norm")]
            return result + [tape.new(leaf.shape, leaf.dtype, "gradient of a norm") for leaf in leaves]

        out.node = tape.node("layer_norm", (x, *leaves), slots, backward)
    return out


def fused_rms_norm(x: Tensor, weight: Tensor, label: str) -> Tensor:
    """torch.nn.functional.rms_norm and Transformer Engine's: one kernel, keeps its input and 1/rms of each row."""
    tape = x.tape
    slots = [tape.save(x, "rms_norm")] if x.needs_grad else []
    out = like(x, label, weight.dtype if tape.autocast is None else None)
    if x.needs_grad:
        slots.append(tape.save(tape.new((*x.shape[:-1], ()), "fp32", f"1/rms of {label}"), "rms_norm"))

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            return [like(saved[0], "gradient of rms norm"), tape.new(weight.shape, weight.dtype, "gradient of a norm")]

        out.node = tape.node("rms_norm", (x, weight), slots, backward)
    return out


def total(x: Tensor, label: str = "sum of a row") -> Tensor:
    """Sum over the last dimension, kept as 1; the gradient is a view of one value a row."""
    x = fp32(x, "sum")
    out = x.tape.new((*x.shape[:-1], ()), x.dtype, label)
    if x.needs_grad:
        shape = x.shape
        out.node = x.tape.node("sum", (x,), [], lambda grads, saved: [expand(grads[0], shape)])  # type: ignore[arg-type]
    return out


def sum_of_copies(x: Tensor, label: str) -> Tensor:
    """Sum over the middle dimension of (rows, copies, width); the gradient is written out for every copy."""
    x = fp32(x, "sum")
    out = x.tape.new((x.shape[0], x.shape[2]), x.dtype, label)
    if x.needs_grad:
        shape, tape = x.shape, x.tape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            return [tape.new(shape, grads[0].dtype, "gradient of every copy")]  # type: ignore[union-attr]

        out.node = tape.node("sum", (x,), [], backward)
    return out


def row_maximum(x: Tensor, label: str) -> Tensor:
    """The largest entry of each row; keeps where it was."""
    tape = x.tape
    out = tape.new((*x.shape[:-1], ()), x.dtype, label)
    places = tape.new((*x.shape[:-1], ()), "int64", f"place of {label}")
    if x.needs_grad:
        slots, whole, dtype = [tape.save(places, "max")], x.shape, x.dtype
        out.node = tape.node("max", (x,), slots, lambda grads, saved: [tape.new(whole, dtype, "gradient of a maximum")])
    return out
