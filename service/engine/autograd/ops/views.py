"""Views, and the copies that stand in where strides allow none."""

from __future__ import annotations

from collections.abc import Sequence

from service.engine.autograd.storage import Extent, Shape, Tensor, contiguous_strides, sizes_of, view_strides


def _view(x: Tensor, shape: Shape, strides: tuple[int, ...]) -> Tensor:
    out = Tensor(x.tape, x.storage, shape, strides, x.dtype, parameter=x.parameter)
    if x.needs_grad:
        old_shape, old_sizes = x.shape, x.sizes

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            grad = grads[0]
            assert grad is not None
            found = view_strides(grad.sizes, grad.strides, old_sizes)
            if found is None:
                copy = grad.tape.new(grad.shape, grad.dtype, "gradient laid out anew")
                return [Tensor(copy.tape, copy.storage, old_shape, contiguous_strides(old_sizes), copy.dtype)]
            return [Tensor(grad.tape, grad.storage, old_shape, found, grad.dtype)]

        out.node = x.tape.node("view", (x,), [], backward)
    return out


def reshape(x: Tensor, shape: Shape, label: str = "copy in another layout") -> Tensor:
    """torch.reshape: a view where the strides allow it, else a contiguous copy."""
    found = view_strides(x.sizes, x.strides, sizes_of(shape))
    if found is None:
        return reshape(clone(x, label), shape)
    return _view(x, shape, found)


def transpose(x: Tensor, first: int, second: int) -> Tensor:
    """Swap two dimensions."""

    def swapped(values: tuple[object, ...]) -> tuple[object, ...]:
        out = list(values)
        out[first], out[second] = out[second], out[first]
        return tuple(out)

    def turned(y: Tensor) -> Tensor:
        return Tensor(
            y.tape, y.storage, swapped(y.shape), swapped(y.strides), y.dtype, parameter=y.parameter  # type: ignore[arg-type]
        )  # fmt: skip

    out = turned(x)
    if x.needs_grad:
        out.node = x.tape.node("transpose", (x,), [], lambda grads, saved: [turned(g) if g else None for g in grads])
    return out


def expand(x: Tensor, shape: Shape) -> Tensor:
    """Broadcast dimensions of extent 1 without copying."""
    strides = tuple(
        0 if have == 1 and want != 1 else step
        for have, want, step in zip(x.sizes, sizes_of(shape), x.strides, strict=True)
    )
    out = Tensor(x.tape, x.storage, shape, strides, x.dtype)
    if x.needs_grad:
        # the sum over the broadcast dimensions is made when the result is fitted to the input
        out.node = x.tape.node("expand", (x,), [], lambda grads, saved: list(grads))
    return out


def split(x: Tensor, extents: Sequence[Extent], *, axis: int = -1) -> list[Tensor]:
    """Cut one dimension into pieces: views; backward joins their gradients."""
    axis = axis % len(x.shape)
    pieces: list[Tensor] = []
    for extent in extents:
        shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
        pieces.append(Tensor(x.tape, x.storage, shape, x.strides, x.dtype))
    if x.needs_grad:
        shape, tape = x.shape, x.tape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            filled = [
                grad if grad is not None else tape.new(piece_shape, dtype, "zero gradient")
                for grad, piece_shape in zip(grads, shapes, strict=True)
            ]
            joined = tape.new(shape, dtype, "joined gradients")
            del filled
            return [joined]

        shapes, dtype = [piece.shape for piece in pieces], x.dtype
        node = tape.node("split", (x,), [], backward)
        node.ports = len(pieces)
        for port, piece in enumerate(pieces):
            piece.node, piece.port = node, port
    return pieces


def select(x: Tensor, axis: int) -> Tensor:
    """x[..., i, …]: one entry of a dimension, as a view; backward fills one entry of a zero tensor as large as x."""
    axis = axis % len(x.shape)

    def without(values: tuple[object, ...]) -> tuple[object, ...]:
        return (*values[:axis], *values[axis + 1 :])

    out = Tensor(x.tape, x.storage, without(x.shape), without(x.strides), x.dtype)  # type: ignore[arg-type]
    if x.needs_grad:
        shape, tape = x.shape, x.tape
        out.node = tape.node(
            "select", (x,), [], lambda grads, saved: [tape.new(shape, grads[0].dtype, "gradient of a slice")]  # type: ignore[union-attr]
        )  # fmt: skip
    return out


def slice_of(x: Tensor, extent: Extent, *, axis: int = -1) -> Tensor:
    """x[..., :n] or the like: a view; backward makes a zero tensor as large as x and fills the slice."""
    axis = axis % len(x.shape)
    out = Tensor(x.tape, x.storage, (*x.shape[:axis], extent, *x.shape[axis + 1 :]), x.strides, x.dtype)
    if x.needs_grad:
        shape, tape = x.shape, x.tape
        out.node = tape.node(
            "slice", (x,), [], lambda grads, saved: [tape.new(shape, grads[0].dtype, "gradient of a slice")]  # type: ignore[union-attr]
        )  # fmt: skip
    return out


def viewed(x: Tensor, shape: Shape, dtype: str) -> Tensor:
    """The same storage read as another dtype (pairs of reals as complex numbers): a view both ways."""

    def seen(y: Tensor, as_shape: Shape, as_dtype: str) -> Tensor:
        return Tensor(y.tape, y.storage, as_shape, contiguous_strides(sizes_of(as_shape)), as_dtype)

    out = seen(x, shape, dtype)
    if x.needs_grad:
        old_shape, old = x.shape, x.dtype
        out.node = x.tape.node("view_as", (x,), [], lambda grads, saved: [seen(grads[0], old_shape, old)])  # type: ignore[arg-type]
    return out


def clone(x: Tensor, label: str) -> Tensor:
    """A contiguous copy."""
    out = x.tape.new(x.shape, x.dtype, label)
    if x.needs_grad:
        out.node = x.tape.node("clone", (x,), [], lambda grads, saved: list(grads))
    return out


def contiguous(x: Tensor, label: str = "contiguous copy") -> Tensor:
    return x if x.contiguous else clone(x, label)
