"""torch.nn.functional.scaled_dot_product_attention on CUDA: which kernel runs, and what each keeps.

Choice: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp (torch 2.13). Saved sets: derivatives.yaml.
"""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.graph import Slot
from service.engine.autograd.storage import ITEMSIZE, Shape, Tensor

#: widest head that flash attention takes
FLASH_MAX_HEAD = 256


def kernel(query: Tensor, key: Tensor, value: Tensor, *, masked: bool, wide_head: bool = False) -> str:
    """Flash for 16 bits without a mask and with one head size, else memory-efficient, else plain mathematics.

    Both fused kernels want as many key heads as query heads; flash alone also takes grouped heads (enable_gqa).
    """
    half = ITEMSIZE[query.dtype] == 2
    same_width = query.shape[-1] == value.shape[-1]
    grouped = query.shape[1] != key.shape[1]
    if half and not masked and same_width and not wide_head:
        return "flash"
    return "math" if grouped else "efficient"


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, chosen: str, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:  # fmt: skip
    """Attention of (b, a, s, d) queries; (b, kv, t, d) keys and values may have fewer heads."""
    query, key, value = ops.autocast(query), ops.autocast(key), ops.autocast(value)
    if chosen == "math":
        with query.tape.no_autocast():
            return _mathematics(query, key, value, mask, dropout)
    if mask is not None and mask.dtype == "bool":
        mask = mask.tape.new(mask.shape, query.dtype, "mask as numbers")
    return _fused(query, key, value, chosen, mask)


def _fused(query: Tensor, key: Tensor, value: Tensor, chosen: str, mask: Tensor | None) -> Tensor:
    tape, name = query.tape, f"{chosen} attention"
    slots: list[Slot] = [tape.save(tensor, name) for tensor in (query, key, value)]
    if mask is not None:
        slots.append(tape.save(mask, name))
    out_shape = (*query.shape[:3], value.shape[-1])
    if chosen == "flash":
        out = ops.like(query, "attention output")
    else:
        rows = tape.new(
            (query.shape[0], query.shape[2], query.shape[1], value.shape[-1]), query.dtype, "attention output"
        )
        out = ops.transpose(rows, 1, 2)
        del rows
    slots.append(tape.save(out, name))
    queries = (
        query.shape[2] if chosen == "flash" else tuple({"s": "s32"}.get(symbol, symbol) for symbol in query.shape[2])
    )
    slots.append(tape.save(tape.new((*query.shape[:2], queries), "fp32", "log-sum-exp"), name))
    if chosen == "flash":
        slots.append(tape.save(tape.new((("2",),), "uint64", "random state"), name))
        slots.append(tape.save(tape.new((), "uint64", "unused"), name))
    else:
        slots.append(tape.save(tape.new((), "int64", "random seed"), name))
        slots.append(tape.save(tape.new((), "int64", "random offset"), name))
    inputs = [query, key, value] if mask is None or not mask.needs_grad else [query, key, value, mask]
    shapes = [tensor.shape for tensor in inputs]

    def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
        if chosen == "flash":
            made = [ops.like(tensor, f"gradient of {what}") for what, tensor in zip(_NAMES, saved[:3], strict=False)]
        else:
            made = [
                _rows_first(tape, shape, saved[0].dtype, what) for what, shape in zip(_NAMES, shapes[:3], strict=False)
            ]
        if len(shapes) > 3:
            made.append(
                tape.new((query_shape[0], query_shape[1], *shapes[3][2:]), made[0].dtype, "gradient of the bias")
            )
        return list(made)

    query_shape = query.shape
    out = Tensor(tape, out.storage, out_shape, out.strides, out.dtype)
    out.node = tape.node(name, inputs, slots, backward)
    return out


_NAMES = ("queries", "keys", "values")


def _rows_first(tape, shape: Shape, dtype: str, what: str) -> Tensor:  # type: ignore[no-untyped-def]
    """A gradient laid out as (b, s, a, d)."""
    rows = tape.new((shape[0], shape[2], shape[1], shape[3]), dtype, f"gradient of {what}")
    return ops.transpose(rows, 1, 2)


def repeat_heads(x: Tensor, heads: tuple[str, ...], group: tuple[str, ...]) -> Tensor:
    """Copies of key or value heads, one for every query head (a view where there is one query head per key head)."""
    if not group:
        return x
    b, kv, t, d = x.shape
    wide = Tensor(x.tape, x.storage, (b, kv, (), t, d), (*x.strides[:2], 0, *x.strides[2:]), x.dtype)
    if x.needs_grad:
        wide.node = x.tape.node("unsqueeze", (x,), [], lambda grads, saved: [_squeezed(grads[0]) if grads[0] else None])
    wide = ops.expand(wide, (b, kv, group, t, d))
    return ops.reshape(wide, (b, heads, t, d), "heads repeated")


def _squeezed(grad: Tensor) -> Tensor:
    shape = (*grad.shape[:2], *grad.shape[3:])
    return Tensor(grad.tape, grad.storage, shape, (*grad.strides[:2], *grad.strides[3:]), grad.dtype)


def _mathematics(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """_scaled_dot_product_attention_math: in fp32, scaling split over queries and keys, every score kept."""
    tape, dtype = query.tape, query.dtype
    query, key, value = (
        ops.to(tensor, "fp32", f"{what} in fp32") for what, tensor in zip(_NAMES, (query, key, value), strict=True)
    )
    scaled = ops.scale(query, "scaled queries")
    heads = query.shape[1]
    if heads != key.shape[1]:
        group = tuple(symbol for symbol in heads if symbol not in key.shape[1])
        if tape.grouped_math:
            key, value = repeat_heads(key, heads, group), repeat_heads(value, heads, group)
    if mask is None or mask.dtype == "bool":
        square = tape.new((query.shape[2], key.shape[2]) if mask is None else mask.shape, "fp32", "mask as numbers")
    else:
        square = mask
    turned = ops.scale(ops.transpose(key, 2, 3), "scaled keys")
    scores = ops.matmul(scaled, turned, "attention scores")
    scores = ops.add(scores, square, "masked scores")
    weights = ops.softmax(scores, "attention probabilities")
    del scores
    weights = ops.dropout(weights, dropout, "attention dropout")
    out = ops.matmul(weights, value, "attention output")
    return ops.to(out, dtype, "attention output")
