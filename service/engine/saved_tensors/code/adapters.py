"""Linear layers of a frozen base with LoRA adapters (peft 0.17 lora/layer.py) and 4-bit weights (bitsandbytes 0.46)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.saved_tensors.code.model import Model

#: joined projections by the targets that put an adapter on them
JOINED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "query_key_value": ("q_proj", "k_proj", "v_proj"),
    "c_attn": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}


def is_target(m: Model, name: str) -> bool:
    """Whether a linear of this name carries an adapter."""
    last = name.rsplit(".", 1)[-1]
    return any(target in m.facts.targets for target in JOINED.get(last, (last,)))


def linear(m: Model, x: Tensor, name: str, out: Extent, *, bias: bool, label: str) -> Tensor:
    """A frozen linear, with its adapter when it is a target."""
    if not is_target(m, name):
        return base(m, x, name, out, bias=bias, label=label)
    if "lora" in m.facts.kernels:
        return fused(m, x, name, out, label)
    return adapted(m, x, name, out, bias=bias, label=label)


def base(m: Model, x: Tensor, name: str, out: Extent, *, bias: bool, label: str) -> Tensor:
    """The frozen linear itself, which needs no input for a weight gradient.

    A 4-bit weight is dequantised for each product, and bitsandbytes' function keeps its input all the same.
    """
    m.hold(x)
    if not m.facts.quantised:
        return m.plain_linear(x, name, out, bias=bias, label=label)
    tape, shape = x.tape, x.shape
    x = ops.autocast(x)
    dtype = x.dtype
    slots = [tape.save(x, "mm")] if x.needs_grad else []
    weight = tape.new((out, shape[-1]), dtype, "dequantised weight")
    result = tape.new((*shape[:-1], out), dtype, label)
    del weight
    if x.needs_grad:

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            whole = tape.new((out, shape[-1]), dtype, "dequantised weight")
            gradient = tape.new(shape, dtype, "gradient of the input")
            del whole
            return [gradient]

        result.node = tape.node("4-bit product", (x,), slots, backward)
    return result


def matrices(m: Model, x: Tensor, name: str, out: Extent) -> tuple[Tensor, Tensor]:
    """The adapter's two matrices, (rank, in) and (out, rank)."""
    tape, rank = m.tape, m.tape.extent("ra")
    shapes = (("lora_A", (rank, x.shape[-1])), ("lora_B", (out, rank)))
    first, second = (
        tape.parameter(f"{tape.home}:{name}.{part}", shape, m.facts.adapter_dtype) for part, shape in shapes
    )
    return first, second


def adapted(m: Model, x: Tensor, name: str, out: Extent, *, bias: bool, label: str) -> Tensor:
    """base(x) + B(A(dropout(x))) · scale: the input is cast to the adapter's dtype, each product keeps its own input,
    the sum is cast back."""
    result = base(m, x, name, out, bias=bias, label=label)
    first, second = matrices(m, x, name, out)
    dtype = m.facts.adapter_dtype
    inner = ops.to(x, dtype, f"{label} adapter input")
    inner = ops.dropout(inner, 1.0 if m.facts.adapter_dropout else 0.0, "adapter dropout")
    low = ops.product(inner, first, None, f"{label} in the adapter")
    del inner
    high = ops.scale(ops.product(low, second, None, f"{label} from the adapter"), "scaled adapter output")
    del low
    return ops.to(ops.add(result, high, label), result.dtype, label)


def fused(m: Model, x: Tensor, name: str, out: Extent, label: str) -> Tensor:
    """Unsloth's LoRA_QKV, LoRA_W and LoRA_MLP: one function that keeps its input and works in the compute dtype."""
    tape, shape, dtype = x.tape, x.shape, x.dtype
    first, second = matrices(m, x, name, out)
    first_shape, second_shape = first.shape, second.shape
    slots = [tape.save(x, "mm")]
    result = tape.new((*shape[:-1], out), dtype, label)

    def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
        weight = tape.new((out, shape[-1]), dtype, "dequantised weight") if m.facts.quantised else None
        gradient = tape.new(shape, dtype, "gradient of the input")
        del weight
        of_first = tape.new(first_shape, m.facts.adapter_dtype, "weight gradient")
        of_second = tape.new(second_shape, m.facts.adapter_dtype, "weight gradient")
        return [gradient, of_first, of_second]

    result.node = tape.node("fused LoRA", (x, first, second), slots, backward)
    return result


def fuses_mlp(m: Model) -> bool:
    """Whether Unsloth's LoRA_MLP runs: all three linears carry adapters, and the activation is a kernel too."""
    return m.facts.frozen and {"lora", "swiglu"} <= m.facts.kernels and m.facts.targets >= MLP_TARGETS


MLP_TARGETS = frozenset({"gate_proj", "up_proj", "down_proj"})


def fused_mlp(m: Model, x: Tensor, width: Extent) -> Tensor:
    """LoRA_MLP: one function that keeps its input, gate and up; backward builds the product again and writes the three
    gradients over the buffers that it has."""
    tape, shape, dtype = x.tape, x.shape, x.dtype
    wide = (*shape[:-1], width)
    pairs = [
        matrices(m, x, "gate_proj", width),
        matrices(m, x, "up_proj", width),
        matrices(m, Tensor(tape, None, wide, (), dtype), "down_proj", shape[-1]),
    ]
    low = [matrix for pair in pairs for matrix in pair]
    gate, up = tape.new(wide, dtype, "gate"), tape.new(wide, dtype, "up")
    slots = [tape.save(x, "mm"), tape.save(gate, "mul"), tape.save(up, "mul")]
    del gate, up
    product = tape.new(wide, dtype, "down projection input")
    out = tape.new(shape, dtype, "mlp output")
    del product

    def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
        inner = tape.new(wide, dtype, "gradient of the down projection input")
        gradient = tape.new(shape, dtype, "gradient of the input")
        del inner
        return [gradient, *(tape.new(matrix.shape, matrix.dtype, "weight gradient") for matrix in low)]

    out.node = tape.node("fused LoRA MLP", (x, *low), slots, backward)
    return out
