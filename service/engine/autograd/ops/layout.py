"""Where results of elementwise operations lie, and operations that are one kernel forward and one backward."""

from __future__ import annotations

from service.engine.autograd.storage import ITEMSIZE, Shape, Tensor, dense_like


def like(x: Tensor, label: str, dtype: str | None = None) -> Tensor:
    """A new tensor shaped as x."""
    return x.tape.new(x.shape, dtype or x.dtype, label, strides=layout_of(x, x.shape))


def layout_of(x: Tensor, shape: Shape) -> tuple[int, ...] | None:
    if x.shape != shape or 0 in x.strides:
        return None
    return dense_like(x.sizes, x.strides)


def broadcast(x: Tensor, y: Tensor) -> Shape:
    short, long = sorted((x.shape, y.shape), key=len)
    padded = ((),) * (len(long) - len(short)) + short
    return tuple(right or left for left, right in zip(padded, long, strict=True))


def promoted(x: Tensor, y: Tensor) -> str:
    return x.dtype if ITEMSIZE[x.dtype] >= ITEMSIZE[y.dtype] else y.dtype


def elementwise(x: Tensor, y: Tensor, label: str) -> Tensor:
    shape = broadcast(x, y)
    layout = layout_of(x, shape) or layout_of(y, shape)
    return x.tape.new(shape, promoted(x, y), label, strides=layout)


def one_kernel(x: Tensor, name: str, label: str, *, saves: str) -> Tensor:
    """An operation whose backward is one kernel that reads its input or its result."""
    tape = x.tape
    slots = [tape.save(x, name)] if saves == "input" and x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:
        if saves == "result":
            slots = [tape.save(out, name)]
        out.node = tape.node(name, (x,), slots, lambda grads, saved: [like(grads[0], f"gradient of {name}")])  # type: ignore[arg-type]
    return out
