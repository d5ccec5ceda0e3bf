"""Operations element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from service.engine.autograd.graph import Slot
from service.engine.autograd.ops.casts import fp32
from service.engine.autograd.ops.layout import elementwise, like, one_kernel
from service.engine.autograd.storage import ITEMSIZE, Shape, Tensor


def add(x: Tensor, y: Tensor, label: str = "sum") -> Tensor:
    out = elementwise(x, y, label)
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
    out = elementwise(x, y, label)
    if with_x or with_y:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            grad = grads[0]
            assert grad is not None
            other = elementwise(grad, saved[-1], "gradient of a factor") if with_y else None
            mine = elementwise(grad, saved[0], "gradient of a factor") if with_x else None
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
    out = elementwise(x, y, label)
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


def silu(x: Tensor, label: str = "silu") -> Tensor:
    return one_kernel(x, "silu", label, saves="input")


def gelu(x: Tensor, label: str = "gelu") -> Tensor:
    """torch's own GELU, exact or tanh."""
    return one_kernel(x, "gelu", label, saves="input")


def relu(x: Tensor, label: str = "relu") -> Tensor:
    return one_kernel(x, "relu", label, saves="result")


def tanh(x: Tensor, label: str = "tanh") -> Tensor:
    return one_kernel(x, "tanh", label, saves="result")


def sigmoid(x: Tensor, label: str = "sigmoid") -> Tensor:
    return one_kernel(x, "sigmoid", label, saves="result")


def softplus(x: Tensor, label: str = "softplus") -> Tensor:
    return one_kernel(fp32(x, "softplus"), "softplus", label, saves="input")


def expm1(x: Tensor, label: str = "expm1") -> Tensor:
    """Saves its result; backward makes the result plus one on the way."""
    x = fp32(x, "expm1")
    tape = x.tape
    out = like(x, label)
    if x.needs_grad:
        slots = [tape.save(out, "expm1")]

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            slope = like(saved[0], "result plus one")
            result = like(slope, "gradient of expm1")
            del slope
            return [result]

        out.node = tape.node("expm1", (x,), slots, backward)
    return out


def minimum(x: Tensor, label: str = "minimum") -> Tensor:
    """The smaller of x and a number held in a tensor; backward halves the gradient of equals and masks the rest."""
    tape = x.tape
    slots = [tape.save(x, "minimum")] if x.needs_grad else []
    out = like(x, label)
    if x.needs_grad:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            equal = like(saved[0], "where equal", "bool")
            halved = like(saved[0], "half of the gradient")
            result = like(halved, "gradient of minimum")
            del equal, halved
            return [result]

        out.node = tape.node("minimum", (x,), slots, backward)
    return out


def where(condition: Tensor, x: Tensor, y: Tensor, label: str) -> Tensor:
    """x where the condition holds, y elsewhere: keeps the condition."""
    tape = x.tape
    trained = x.needs_grad or y.needs_grad
    slots = [tape.save(condition, "where")] if trained else []
    out = elementwise(x, y, label)
    if trained:
        out.node = tape.node(
            "where", (x, y), slots, lambda grads, saved: [like(grads[0], f"gradient of {side}") for side in ("x", "y")]  # type: ignore[arg-type]
        )  # fmt: skip
    return out


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
