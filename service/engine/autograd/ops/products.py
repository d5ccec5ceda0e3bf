"""Matrix products."""

from __future__ import annotations

from service.engine.autograd.graph import Slot
from service.engine.autograd.ops.casts import autocast, to
from service.engine.autograd.ops.views import expand, reshape
from service.engine.autograd.storage import Extent, Shape, Tensor


def product(x: Tensor, weight: Tensor, offset: Tensor | None, label: str) -> Tensor:
    """The linear of torch.nn.functional: mm or addmm over all tokens at once."""
    tape = x.tape
    x, weight = autocast(x), autocast(weight)
    offset = autocast(offset) if offset is not None else None
    flat_shape = (tuple(symbol for extent in x.shape[:-1] for symbol in extent), x.shape[-1])
    rows = reshape(x, flat_shape, "contiguous input") if len(x.shape) > 2 else x
    slots: list[Slot] = []
    if weight.needs_grad:
        slots.append(tape.save(rows, "mm"))
    if rows.needs_grad:
        slots.append(tape.save(weight, "mm"))
    out = tape.new((flat_shape[0], weight.shape[0]), x.dtype, label)
    inputs = [rows, weight] if offset is None else [rows, weight, offset]
    if any(tensor.needs_grad for tensor in inputs):
        out.node = tape.node("mm", inputs, slots, _mm_backward(rows, weight, offset))
    return reshape(out, (*x.shape[:-1], weight.shape[0]))


def _mm_backward(rows: Tensor, weight: Tensor, offset: Tensor | None):  # type: ignore[no-untyped-def]
    shape, with_rows, with_weight = rows.shape, rows.needs_grad, weight.needs_grad
    weight_shape, dtype = weight.shape, weight.dtype
    with_offset = offset is not None and offset.needs_grad

    def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
        grad = grads[0]
        assert grad is not None
        tape = grad.tape
        if with_offset:
            # addmm makes the inputs' gradients in the order of its arguments: bias, mat1, mat2
            bias = tape.new(weight_shape[:1], dtype, "gradient of a bias")
        of_weight = tape.new(weight_shape, dtype, "weight gradient") if with_weight else None
        of_rows = tape.new(shape, dtype, "gradient of the input") if with_rows else None
        return [of_rows, of_weight, bias] if with_offset else [of_rows, of_weight]

    return backward


def bmm(x: Tensor, y: Tensor, label: str) -> Tensor:
    """Batched product of (n, i, j) and (n, j, k); keeps both factors."""
    tape = x.tape
    slots: list[Slot] = []
    if y.needs_grad:
        slots.append(tape.save(x, "bmm"))
    if x.needs_grad:
        slots.append(tape.save(y, "bmm"))
    out = tape.new((x.shape[0], x.shape[1], y.shape[2]), x.dtype, label)
    if x.needs_grad or y.needs_grad:
        shapes = (x.shape if x.needs_grad else None, y.shape if y.needs_grad else None)
        out.node = tape.node("bmm", (x, y), slots, _bmm_backward(*shapes, x.dtype))
    return out


def _bmm_backward(left: Shape | None, right: Shape | None, dtype: str):  # type: ignore[no-untyped-def]
    def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
        grad = grads[0]
        assert grad is not None
        of_right = grad.tape.new(right, dtype, "gradient of a factor") if right is not None else None
        of_left = grad.tape.new(left, dtype, "gradient of a factor") if left is not None else None
        return [of_left, of_right]

    return backward


def grouped(x: Tensor, weight: Tensor, offsets: Tensor, out_extent: Extent, label: str) -> Tensor:
    """torch.nn.functional.grouped_mm of sorted rows with one matrix a group; autocast does not know it."""
    tape = x.tape
    x = to(x, weight.dtype, "rows in the weights' dtype")
    slots: list[Slot] = []
    if weight.needs_grad:
        slots.append(tape.save(x, "grouped_mm"))
    if x.needs_grad:
        slots.append(tape.save(weight, "grouped_mm"))
    if x.needs_grad or weight.needs_grad:
        slots.append(tape.save(offsets, "grouped_mm"))
    out = tape.new((x.shape[0], out_extent), x.dtype, label)
    if x.needs_grad or weight.needs_grad:
        shapes = (x.shape if x.needs_grad else None, weight.shape if weight.needs_grad else None)
        out.node = tape.node("grouped_mm", (x, weight), slots, _bmm_backward(*shapes, x.dtype))
    return out


def bias_bmm(bias: Tensor, x: Tensor, y: Tensor, label: str) -> Tensor:
    """baddbmm of a bias that asks for no gradient: as bmm."""
    return bmm(autocast(x), autocast(y), label)


def matmul(x: Tensor, y: Tensor, label: str) -> Tensor:
    """torch.matmul of (b, a, i, j) and (b, a, j, k): both become batches of matrices, copied where strides say so."""
    x, y = autocast(x), autocast(y)
    batch = x.shape[:-2]
    if y.shape[:-2] != batch:
        y = expand(y, (*batch, *y.shape[-2:]))
    merged = tuple(symbol for extent in batch for symbol in extent)
    left = reshape(x, (merged, *x.shape[-2:]), "factor laid out for a batched product")
    right = reshape(y, (merged, *y.shape[-2:]), "factor laid out for a batched product")
    out = bmm(left, right, label)
    return reshape(out, (*batch, x.shape[-2], y.shape[-1]))
