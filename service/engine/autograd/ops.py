"""Operations of torch that the modelling code is written in: what each allocates, saves and needs in backward.

Saved sets follow torch 2.13 tools/autograd/derivatives.yaml and FunctionsManual.cpp; gradients of an operation are made
in the order of its generated `apply`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.engine.autograd.graph import Slot
from service.engine.autograd.storage import (
    ITEMSIZE,
    Extent,
    Shape,
    Tensor,
    contiguous_strides,
    dense_like,
    sizes_of,
    view_strides,
)

#: torch.autocast for CUDA runs these in fp32 (aten/src/ATen/autocast_mode.h, fp32 lists)
FP32_UNDER_AUTOCAST = frozenset({"pow", "rsqrt", "softmax", "log_softmax", "layer_norm", "sum", "nll_loss", "exp"})


# views


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


def picked(x: Tensor, axis: int, index: Tensor, label: str) -> Tensor:
    """x[..., [i], :]: one entry of a dimension as a copy of extent 1; keeps the index."""
    tape = x.tape
    slots = [tape.save(index, "index")] if x.needs_grad else []
    out = tape.new((*x.shape[:axis], (), *x.shape[axis + 1 :]), x.dtype, label)
    if x.needs_grad:
        whole = x.shape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            zeros = tape.new(whole, grads[0].dtype, "zeros to add into")  # type: ignore[union-attr]
            result = like(zeros, "gradient of a picked entry")
            del zeros
            return [result]

        out.node = tape.node("index", (x,), slots, backward)
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


# copies


def clone(x: Tensor, label: str) -> Tensor:
    """A contiguous copy."""
    out = x.tape.new(x.shape, x.dtype, label)
    if x.needs_grad:
        out.node = x.tape.node("clone", (x,), [], lambda grads, saved: list(grads))
    return out


def contiguous(x: Tensor, label: str = "contiguous copy") -> Tensor:
    return x if x.contiguous else clone(x, label)


def to(x: Tensor, dtype: str, label: str = "") -> Tensor:
    """Cast; the same tensor when it has the dtype already."""
    if x.dtype == dtype:
        return x
    kind = "cast" if x.parameter is not None and x.storage is None else "activation"
    out = x.tape.new(x.shape, dtype, label or f"copy in {dtype}", strides=_layout(x, x.shape), kind=kind)
    if x.needs_grad:
        old = x.dtype
        out.node = x.tape.node("to", (x,), [], lambda grads, saved: [_cast(grads[0], old)])
    return out


def _cast(grad: Tensor | None, dtype: str) -> Tensor | None:
    if grad is None or grad.dtype == dtype:
        return grad
    return grad.tape.new(grad.shape, dtype, "gradient cast back", strides=_layout(grad, grad.shape))


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


# element by element


def _layout(x: Tensor, shape: Shape) -> tuple[int, ...] | None:
    if x.shape != shape or 0 in x.strides:
        return None
    return dense_like(x.sizes, x.strides)


def _broadcast(x: Tensor, y: Tensor) -> Shape:
    short, long = sorted((x.shape, y.shape), key=len)
    padded = ((),) * (len(long) - len(short)) + short
    return tuple(right or left for left, right in zip(padded, long, strict=True))


def _promoted(x: Tensor, y: Tensor) -> str:
    return x.dtype if ITEMSIZE[x.dtype] >= ITEMSIZE[y.dtype] else y.dtype


def _elementwise(x: Tensor, y: Tensor, label: str) -> Tensor:
    shape = _broadcast(x, y)
    layout = _layout(x, shape) or _layout(y, shape)
    return x.tape.new(shape, _promoted(x, y), label, strides=layout)


def like(x: Tensor, label: str, dtype: str | None = None) -> Tensor:
    """A new tensor shaped as x."""
    return x.tape.new(x.shape, dtype or x.dtype, label, strides=_layout(x, x.shape))


def add(x: Tensor, y: Tensor, label: str = "sum") -> Tensor:
    out = _elementwise(x, y, label)
    if x.needs_grad or y.needs_grad:
        out.node = x.tape.node("add", (x, y), [], lambda grads, saved: [grads[0], grads[0]])
    return out


def mul(x: Tensor, y: Tensor, label: str = "product") -> Tensor:
    """Product of two tensors: each factor that meets one with a gradient is saved."""
    tape = x.tape
    with_x, with_y = x.needs_grad, y.needs_grad
    slots: list[Slot] = []
    if with_x:
        slots.append(tape.save(y, "mul"))
    if with_y:
        slots.append(tape.save(x, "mul"))
    out = _elementwise(x, y, label)
    if with_x or with_y:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            grad = grads[0]
            assert grad is not None
            other = _elementwise(grad, saved[-1], "gradient of a factor") if with_y else None
            mine = _elementwise(grad, saved[0], "gradient of a factor") if with_x else None
            return [mine, other]

        out.node = tape.node("mul", (x, y), slots, backward)
    return out


def add_in_place(x: Tensor, y: Tensor) -> Tensor:
    """x += y: nothing new, nothing saved."""
    out = Tensor(x.tape, x.storage, x.shape, x.strides, x.dtype)
    if x.needs_grad or y.needs_grad:
        out.node = x.tape.node("add", (x, y), [], lambda grads, saved: [grads[0], grads[0]])
    return out


def scale_in_place(x: Tensor) -> Tensor:
    """x *= number: nothing new in forward."""
    out = Tensor(x.tape, x.storage, x.shape, x.strides, x.dtype)
    if x.needs_grad:
        out.node = x.tape.node("scale", (x,), [], lambda grads, saved: [like(grads[0], "scaled gradient")])  # type: ignore[arg-type]
    return out


def sub(x: Tensor, y: Tensor, label: str = "difference") -> Tensor:
    """x − y: nothing to save; y's gradient is negated."""
    out = _elementwise(x, y, label)
    if x.needs_grad or y.needs_grad:
        out.node = x.tape.node("sub", (x, y), [], lambda grads, saved: [grads[0], like(grads[0], "negated gradient")])  # type: ignore[arg-type]
    return out


def divide_in_place(x: Tensor, y: Tensor) -> Tensor:
    """x /= y: keeps x as it was, and y."""
    tape = x.tape
    slots: list[Slot] = []
    if x.needs_grad or y.needs_grad:
        before = tape.new(x.shape, x.dtype, "dividend before division in place")
        slots = [tape.save(before, "div"), tape.save(y, "div")]
        del before
    out = Tensor(tape, x.storage, x.shape, x.strides, x.dtype)
    if slots:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            grad = grads[0]
            assert grad is not None
            squared = like(grad, "gradient times dividend")
            other = like(squared, "gradient of a divisor")
            del squared
            return [like(grad, "gradient of a dividend"), other]

        out.node = tape.node("div", (x, y), slots, backward)
    return out


def scale(x: Tensor, label: str = "scaled") -> Tensor:
    """Multiply or divide by a number, or negate: nothing to save."""
    out = like(x, label)
    if x.needs_grad:
        out.node = x.tape.node("scale", (x,), [], lambda grads, saved: [like(grads[0], "scaled gradient")])  # type: ignore[arg-type]
    return out


def shift(x: Tensor, label: str = "shifted") -> Tensor:
    """Add a number: nothing to save, the gradient passes."""
    out = like(x, label)
    if x.needs_grad:
        out.node = x.tape.node("shift", (x,), [], lambda grads, saved: list(grads))
    return out


def _one_kernel(x: Tensor, name: str, label: str, *, saves: str) -> Tensor:
    """An operation whose backward is one kernel that reads its input or its result."""
    tape = x.tape
    slots = [tape.save(x, name)] if saves == "input" and x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:
        if saves == "result":
            slots = [tape.save(out, name)]
        out.node = tape.node(name, (x,), slots, lambda grads, saved: [like(grads[0], f"gradient of {name}")])  # type: ignore[arg-type]
    return out


def silu(x: Tensor, label: str = "silu") -> Tensor:
    return _one_kernel(x, "silu", label, saves="input")


def gelu(x: Tensor, label: str = "gelu") -> Tensor:
    """torch's own GELU, exact or tanh."""
    return _one_kernel(x, "gelu", label, saves="input")


def relu(x: Tensor, label: str = "relu") -> Tensor:
    return _one_kernel(x, "relu", label, saves="result")


def tanh(x: Tensor, label: str = "tanh") -> Tensor:
    return _one_kernel(x, "tanh", label, saves="result")


def sigmoid(x: Tensor, label: str = "sigmoid") -> Tensor:
    return _one_kernel(x, "sigmoid", label, saves="result")


def clamp(x: Tensor, label: str = "clamped") -> Tensor:
    """Cut off at limits; backward makes the comparison and the masked gradient."""
    tape = x.tape
    slots = [tape.save(x, "clamp")] if x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            within = like(saved[0], "inside the limits", "bool")
            result = like(saved[0], "gradient of clamp")
            del within
            return [result]

        out.node = tape.node("clamp", (x,), slots, backward)
    return out


def power(x: Tensor, label: str = "square") -> Tensor:
    """x to the power of a number: saves x; backward makes x^(n-1) and n·x^(n-1) on the way."""
    x = fp32(x, "pow")
    tape = x.tape
    slots = [tape.save(x, "pow")] if x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            lower = like(saved[0], "x^(n-1)")
            scaled = like(lower, "n·x^(n-1)")
            result = like(scaled, "gradient of a power")
            del lower, scaled
            return [result]

        out.node = tape.node("pow", (x,), slots, backward)
    return out


def mean(x: Tensor, label: str = "mean") -> Tensor:
    """Mean over the last dimension, kept as 1."""
    out = x.tape.new((*x.shape[:-1], ()), x.dtype, label)
    if x.needs_grad:
        shape, dtype, tape = x.shape, x.dtype, x.tape
        out.node = tape.node("mean", (x,), [], lambda grads, saved: [tape.new(shape, dtype, "gradient of a mean")])
    return out


def rsqrt(x: Tensor, label: str = "1/rms") -> Tensor:
    """Saves its result; backward works on tensors of one value a row."""
    x = fp32(x, "rsqrt")
    tape = x.tape
    out = like(x, label)
    if x.needs_grad:
        slots = [tape.save(out, "rsqrt")]

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            cubed = like(saved[0], "cube")
            halved = like(cubed, "half of it")
            result = like(halved, "gradient of rsqrt")
            del cubed, halved
            return [result]

        out.node = tape.node("rsqrt", (x,), slots, backward)
    return out


def cat(parts: Sequence[Tensor], shape: Shape, label: str = "joined") -> Tensor:
    """Concatenate along the last dimension; gradients are views of the whole gradient."""
    tape = parts[0].tape
    dtype = max((part.dtype for part in parts), key=lambda name: ITEMSIZE[name])
    out = tape.new(shape, dtype, label)
    if any(part.needs_grad for part in parts):
        shapes = [part.shape for part in parts]

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            grad = grads[0]
            assert grad is not None
            return [Tensor(grad.tape, grad.storage, part, grad.strides, grad.dtype) for part in shapes]

        out.node = tape.node("cat", parts, [], backward)
    return out


def dropout(x: Tensor, rate: float, label: str) -> Tensor:
    """native_dropout on CUDA: keeps a mask of one byte an element."""
    if rate == 0.0:
        return x
    tape = x.tape
    out = like(x, label)
    mask = like(x, f"mask of {label}", "bool")
    if x.needs_grad:
        slots = [tape.save(mask, "native_dropout")]
        out.node = tape.node(
            "native_dropout", (x,), slots, lambda grads, saved: [like(grads[0], "gradient of dropout")]  # type: ignore[arg-type]
        )  # fmt: skip
    return out


def masked(x: Tensor, label: str = "masked", *, mask: Tensor | None = None) -> Tensor:
    """masked_fill or where with a constant: keeps the mask."""
    tape = x.tape
    slots = [tape.save(mask, "masked_fill")] if mask is not None and x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:
        out.node = tape.node("masked_fill", (x,), slots, lambda grads, saved: [like(grads[0], "gradient of masked")])  # type: ignore[arg-type]
    return out


# reductions over a row


def softmax(x: Tensor, label: str, *, dtype: str | None = None) -> Tensor:
    """Keeps its result; with `dtype` the input is cast first."""
    x = fp32(x if dtype is None else to(x, dtype, "scores cast for softmax"), "softmax")
    return _one_kernel(x, "softmax", label, saves="result")


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


# choosing rows and entries


def top_k(x: Tensor, extent: Extent, label: str) -> tuple[Tensor, Tensor]:
    """The largest entries of each row and where they were."""
    tape = x.tape
    shape = (*x.shape[:-1], extent)
    values = tape.new(shape, x.dtype, label)
    places = tape.new(shape, "int64", f"places of {label}")
    if x.needs_grad:
        whole = x.shape
        slots = [tape.save(places, "topk")]
        values.node = tape.node(
            "topk", (x,), slots, lambda grads, saved: [tape.new(whole, grads[0].dtype, "gradient of chosen entries")]  # type: ignore[union-attr]
        )  # fmt: skip
    return values, places


def gather(x: Tensor, places: Tensor, label: str) -> Tensor:
    """Entries of each row by place."""
    tape = x.tape
    slots = [tape.save(places, "gather")] if x.needs_grad else []
    out = tape.new(places.shape, x.dtype, label)
    if x.needs_grad:
        whole = x.shape
        out.node = tape.node(
            "gather", (x,), slots, lambda grads, saved: [tape.new(whole, grads[0].dtype, "gradient of the gathered")]  # type: ignore[union-attr]
        )  # fmt: skip
    return out


def rows_at(x: Tensor, indices: Tensor, label: str) -> Tensor:
    """x[indices] over the first dimension; backward adds into a tensor of zeros, out of place."""
    tape = x.tape
    slots = [tape.save(indices, "index")] if x.needs_grad else []
    out = tape.new((indices.shape[0], *x.shape[1:]), x.dtype, label)
    if x.needs_grad:
        whole = x.shape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            zeros = tape.new(whole, grads[0].dtype, "zeros to add into")  # type: ignore[union-attr]
            result = like(zeros, "gradient of chosen rows")
            del zeros
            return [result]

        out.node = tape.node("index", (x,), slots, backward)
    return out


def written_into(parts: Sequence[Tensor], shape: Shape, label: str) -> Tensor:
    """A new tensor that parts are copied into one after the other (CopySlices keeps whole copies in backward)."""
    tape = parts[0].tape
    out = tape.new(shape, parts[0].dtype, label)
    whole = out
    for part in parts:
        before, out = out, Tensor(tape, whole.storage, shape, whole.strides, whole.dtype)
        part_shape = part.shape

        def backward(
            grads: list[Tensor | None], saved: list[Tensor], part_shape: Shape = part_shape
        ) -> list[Tensor | None]:
            rest = tape.new(shape, grads[0].dtype, "gradient of what was there before")  # type: ignore[union-attr]
            return [rest, tape.new(part_shape, rest.dtype, "gradient of a part")]

        out.node = tape.node("copy_slices", (before, part), [], backward)
    return out


# matrix products


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


def custom(
    x: Tensor, name: str, forward: Callable[[Tensor], Tensor], backward: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """An autograd.Function that saves its input; `forward` and `backward` run without a graph."""
    tape = x.tape
    out = forward(Tensor(tape, x.storage, x.shape, x.strides, x.dtype))
    slots = [tape.save(x, name)] if x.needs_grad else []
    if x.needs_grad:
        out.node = tape.node(name, (x,), slots, lambda grads, saved: [backward(grads[0], saved[0])])  # type: ignore[arg-type]
    return out


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


# tables and the loss


def embedding(table: Tensor, shape: Shape, label: str, *, indices: Tensor | None = None) -> Tensor:
    """Rows of a table; backward makes a dense gradient as large as the table."""
    tape = table.tape
    slots = [tape.save(indices, "embedding")] if indices is not None and table.needs_grad else []
    out = tape.new((*shape, table.shape[-1]), table.dtype, label)
    if table.needs_grad:
        rows, dtype = table.shape, table.dtype
        out.node = tape.node(
            "embedding", (table,), slots, lambda grads, saved: [tape.new(rows, dtype, "gradient of an embedding table")]
        )
    return out


def cross_entropy(logits: Tensor, label: str = "log-softmax of the logits", *, targets: Tensor) -> Tensor:
    """log_softmax in the dtype of the logits, then nll_loss (in fp32 under autocast), over (tokens, vocabulary)."""
    tape = logits.tape
    logs = _one_kernel(logits, "log_softmax", label, saves="result")
    logs = fp32(logs, "nll_loss")
    slots = [tape.save(logs, "nll_loss"), tape.save(targets, "nll_loss")]
    loss = tape.new((), logs.dtype, "loss")
    slots.append(tape.save(tape.new((), logs.dtype, "total weight of the loss"), "nll_loss"))
    shape, dtype = logs.shape, logs.dtype
    loss.node = tape.node(
        "nll_loss", (logs,), slots, lambda grads, saved: [tape.new(shape, dtype, "gradient of the log-softmax")]
    )
    return loss
