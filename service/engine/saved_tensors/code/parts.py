"""Parts that most families of transformers 5.24 share: norms, rotary positions, attention, MLP, loss."""

from __future__ import annotations

from typing import Literal

from service.engine.autograd import attention as sdpa
from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.saved_tensors.code import adapters
from service.engine.saved_tensors.code.model import Model


def rms_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """LlamaRMSNorm: Python code that computes in fp32 and multiplies the weight in the input's dtype."""
    with m.tape.part("norm", region="layernorm"):
        weight = m.vector(f"{name}.weight", x.shape[-1])
        if "rmsnorm" in m.facts.kernels:
            return ops.fused_rms_norm(x, weight, f"{name} output")
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        variance = ops.mean(ops.power(wide))
        normal = ops.mul(wide, ops.rsqrt(ops.shift(variance), f"1/rms of {name}"), f"{name} normalised")
        del wide
        return ops.mul(weight, ops.to(normal, x.dtype, f"{name} normalised"), f"{name} output")


def late_rms_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """Olmo2RMSNorm, GptOssRMSNorm: as LlamaRMSNorm, but the weight is multiplied in fp32 and the result cast."""
    with m.tape.part("norm", region="layernorm"):
        weight = m.vector(f"{name}.weight", x.shape[-1])
        if "rmsnorm" in m.facts.kernels:
            return ops.fused_rms_norm(x, weight, f"{name} output")
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        variance = ops.mean(ops.power(wide))
        normal = ops.mul(wide, ops.rsqrt(ops.shift(variance), f"1/rms of {name}"), f"{name} normalised")
        del wide
        return ops.to(ops.mul(weight, normal, f"{name} output in fp32"), x.dtype, f"{name} output")


def layer_norm(m: Model, x: Tensor, name: str, *, weight: bool = True, bias: bool = True) -> Tensor:
    """nn.LayerNorm: one kernel."""
    with m.tape.part("norm", region="layernorm"):
        return ops.layer_norm(
            x,
            m.vector(f"{name}.weight", x.shape[-1]) if weight else None,
            m.vector(f"{name}.bias", x.shape[-1]) if bias else None,
            f"{name} output",
        )


def gemma_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """GemmaRMSNorm: everything in fp32, multiplied by 1 + weight, cast at the end."""
    with m.tape.part("norm", region="layernorm"):
        weight = m.vector(f"{name}.weight", x.shape[-1])
        if "rmsnorm" in m.facts.kernels:
            return ops.fused_rms_norm(x, weight, f"{name} output")
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        scale = ops.rsqrt(ops.shift(ops.mean(ops.power(wide))), f"1/rms of {name}")
        normal = ops.mul(wide, scale, f"{name} normalised")
        del wide, scale
        one_more = ops.shift(ops.to(weight, "fp32", "norm weight in fp32"), f"1 + weight of {name}")
        normal = ops.mul(normal, one_more, f"{name} output in fp32")
        return ops.to(normal, x.dtype, f"{name} output")


def centred_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """CohereLayerNorm: a layer norm without bias, written in Python in fp32."""
    with m.tape.part("norm", region="layernorm"):
        weight = m.vector(f"{name}.weight", x.shape[-1])
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        middle = ops.mean(wide)
        spread = ops.mean(ops.power(ops.sub(wide, middle, "distance to the mean")))
        normal = ops.sub(wide, middle, "distance to the mean")
        del wide, middle
        normal = ops.mul(normal, ops.rsqrt(ops.shift(spread), f"1/σ of {name}"), f"{name} normalised")
        normal = ops.mul(ops.to(weight, "fp32", "norm weight in fp32"), normal, f"{name} output in fp32")
        return ops.to(normal, x.dtype, f"{name} output")


def bare_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """OlmoLayerNorm: torch's layer norm in fp32 without weight and bias."""
    with m.tape.part("norm", region="layernorm"):
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        return ops.to(ops.layer_norm(wide, None, None, f"{name} output in fp32"), x.dtype, f"{name} output")


def shifted_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """NemotronLayerNorm1P: torch's layer norm with 1 + weight."""
    with m.tape.part("norm", region="layernorm"):
        weight = ops.shift(m.vector(f"{name}.weight", x.shape[-1]), f"1 + weight of {name}")
        bias = m.vector(f"{name}.bias", x.shape[-1])
        half = m.tape.autocast
        if half is not None:
            x, weight, bias = (ops.to(tensor, half) for tensor in (x, weight, bias))
        with m.tape.no_autocast():
            return ops.layer_norm(x, weight, bias, f"{name} output")


#: families whose norm is not the one that its kind suggests
NORMS = {
    "cohere": centred_norm,
    "cohere2": centred_norm,
    "olmo": bare_norm,
    "nemotron": shifted_norm,
    "gemma": gemma_norm,
    "gemma2": gemma_norm,
    "gemma3": gemma_norm,
    "gemma3_text": gemma_norm,
    "olmo2": late_rms_norm,
    "olmo3": late_rms_norm,
    "gpt_oss": late_rms_norm,
}


def norm(m: Model, x: Tensor, name: str) -> Tensor:
    """The model's own kind of norm."""
    kind = m.architecture.norm
    if m.architecture.code in NORMS:
        return NORMS[m.architecture.code](m, x, name)
    if kind == "rmsnorm":
        return rms_norm(m, x, name)
    return layer_norm(m, x, name, weight=kind != "layernorm-no-weight", bias=kind == "layernorm")


def positions(m: Model, symbol: str = "d", dtype: str | None = None, *, half: bool = False) -> tuple[Tensor, Tensor]:
    """cos and sin of rotary positions for one sequence, made in fp32 and cast to the dtype of the stream.

    `half` leaves them as one value a pair of elements.
    """
    t = m.tape
    ids = t.new(t.shape("1 s 1"), "fp32", "position ids in fp32")
    angles = t.new(t.shape(f"1 s {symbol}2"), "fp32", "angles")
    del ids
    both = angles if half else t.new(t.shape(f"1 s {symbol}"), "fp32", "angles twice")
    made = []
    for name in ("cos", "sin"):
        raw = t.new(both.shape, "fp32", name)
        made.append(t.new(both.shape, "fp32", f"scaled {name}"))
        del raw
    cos, sin = (
        ops.to(table, dtype or stream_dtype(m), f"{name} of positions")
        for name, table in zip(("cos", "sin"), made, strict=True)
    )
    del angles
    return _over_heads(cos), _over_heads(sin)


def stream_dtype(m: Model) -> str:
    """dtype of the residual stream: that of the stored weights."""
    return m.facts.residual or m.facts.weights


def _over_heads(table: Tensor) -> Tensor:
    shape = (table.shape[0], (), *table.shape[1:])
    return Tensor(table.tape, table.storage, shape, (table.strides[0], 0, *table.strides[1:]), table.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, label: str) -> Tensor:
    """x·cos + rotate_half(x)·sin, in separate operations."""
    return ops.add(ops.mul(x, cos), ops.mul(rotate_half(x), sin), label)


def rotate_half(x: Tensor) -> Tensor:
    half = tuple(f"{symbol}2" for symbol in x.shape[-1])
    first = ops.slice_of(x, half)
    second = ops.slice_of(x, half)
    return ops.cat((ops.scale(second, "negated half"), first), x.shape, "rotated halves")


def rotate_part(x: Tensor, cos: Tensor, sin: Tensor, label: str, *, turned: Extent, rest: Extent) -> Tensor:
    """Rotate the first elements of each head and join the rest to them (partial rotary positions)."""
    first, others = ops.slice_of(x, turned), ops.slice_of(x, rest)
    return ops.cat((rotate(first, cos, sin, label), others), x.shape, label)


def to_heads(x: Tensor, heads: Extent, width: Extent) -> Tensor:
    """(b, s, heads·width) as (b, heads, s, width): a view."""
    return ops.transpose(ops.reshape(x, (*x.shape[:2], heads, width)), 1, 2)


def from_heads(x: Tensor) -> Tensor:
    """(b, s, heads, width) as (b, s, heads·width)."""
    return ops.reshape(x, (*x.shape[:2], (*x.shape[2], *x.shape[3])), "attention output laid out by token")


def causal_mask(m: Model, *, sliding: bool = False, dtype: str | None = None) -> Tensor | None:
    """The mask that transformers makes: floats for eager attention; none for sdpa, bools once a window is reached."""
    t = m.tape
    if m.facts.attention == "eager":
        return t.new(t.shape("b 1 s s"), dtype or stream_dtype(m), "causal mask")
    if not (sliding and m.facts.window_reached):
        return None
    return bool_mask(m)


def bool_mask(m: Model) -> Tensor:
    """A bool mask of one sequence, seen by every sequence of the batch."""
    t = m.tape
    one = t.new(t.shape("1 1 s s"), "bool", "causal mask")
    return Tensor(t, one.storage, t.shape("b 1 s s"), (0, *one.strides[1:]), "bool")


#: fp32: softmax in fp32, cast to the queries' dtype (Llama); cast: in the scores' dtype, cast to the values' (GPT-2);
#: plain: in the scores' dtype (BERT, T5)
Softmax = Literal["fp32", "cast", "plain"]


def attention(
    m: Model, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, dropout: float = 0.0,
    softmax: Softmax = "fp32", softcap: bool = False, contiguous: bool = True,
) -> Tensor:  # fmt: skip
    """Eager or fused attention of heads that were projected and turned; the result is (b, s, a, d)."""
    with m.tape.part("attention", region="core_attn"):
        if m.facts.attention == "eager":
            out = eager_attention(m, query, key, value, mask, dropout, softmax, softcap)
        else:
            out = fused_attention(m, query, key, value, mask, dropout)
        out = ops.transpose(out, 1, 2)
        return ops.contiguous(out, "attention output laid out by token") if contiguous else out


def fused_attention(m: Model, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """transformers.integrations.sdpa_attention: grouped heads go in as they are unless there is a mask."""
    if mask is not None or key.shape[-1] != value.shape[-1]:
        key, value = _repeated(m, key), _repeated(m, value)
    chosen = (
        sdpa.kernel(ops.autocast(query), key, value, masked=mask is not None, wide_head=m.facts.wide_heads)
        if m.facts.attention == "sdpa"
        else "flash"
    )
    return sdpa.attend(query, key, value, chosen=chosen, mask=mask if chosen != "flash" else None, dropout=dropout)


def _repeated(m: Model, x: Tensor) -> Tensor:
    if x.shape[1] != m.kv_heads:
        return x
    group = tuple(symbol for symbol in m.heads if symbol not in m.kv_heads)
    return sdpa.repeat_heads(x, m.heads, group)


def eager_attention(
    m: Model, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, softmax: Softmax,
    softcap: bool, bias: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Scores, bias, mask, softmax, dropout and the product with the values."""
    keys, values = _repeated(m, key), _repeated(m, value)
    weights = ops.scale(ops.matmul(query, ops.transpose(keys, 2, 3), "attention scores"), "scaled scores")
    if softcap:
        weights = ops.scale(weights, "scores over the cap")
        weights = ops.tanh(weights, "capped scores (tanh)")
        weights = ops.scale(weights, "capped scores")
    if bias is not None:
        weights = ops.add(weights, bias, "scores with position bias")
    if mask is not None:
        weights = ops.add(weights, mask, "masked scores")
    weights = ops.softmax(weights, "attention probabilities", dtype="fp32" if softmax == "fp32" else None)
    if softmax != "plain":
        weights = ops.to(weights, query.dtype if softmax == "fp32" else value.dtype, "attention probabilities cast")
    weights = ops.dropout(weights, dropout, "attention dropout")
    m.probabilities.append(weights)
    return ops.matmul(weights, values, "attention output")


def activated(m: Model, x: Tensor, function: str) -> Tensor:
    """The activation, fused in torch or written in Python, by the name the modelling code gives it."""
    if function in ("gelu_new", "gelu_fast", "gelu_python_tanh"):
        return _gelu_new(x)
    if function in ("relu2", "relu_squared"):
        return ops.power(ops.relu(x, "relu"), "squared relu")
    if function == "xielu":
        return _xielu(m, x)
    if function.startswith("relu"):
        return ops.relu(x, "activated gate" if m.architecture.gated else "relu")
    if function.startswith("gelu"):
        return ops.gelu(x, "activated gate" if m.architecture.gated else "gelu")
    return ops.silu(x, "activated gate" if m.architecture.gated else "silu")


def _gelu_new(x: Tensor) -> Tensor:
    """NewGELUActivation: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), an operation at a time."""
    half = ops.scale(x, "half of it")
    inner = ops.add(x, ops.scale(ops.power(x, "cube"), "scaled cube"), "inner sum")
    inner = ops.scale(inner, "scaled inner sum")
    inner = ops.tanh(inner, "tanh of gelu")
    return ops.mul(half, ops.shift(inner, "1 + tanh"), "gelu")


def _xielu(m: Model, x: Tensor) -> Tensor:
    """XIELUActivation without its CUDA kernel: αp·x² + β·x above 0, (expm1(min(x, ε)) − x)·αn + β·x below."""
    above = ops.softplus(m.vector("mlp.act_fn.alpha_p", ()), "alpha_p")
    below = ops.shift(ops.softplus(m.vector("mlp.act_fn.alpha_n", ()), "softplus of alpha_n"), "alpha_n")
    positive = x.tape.new(x.shape, "bool", "where the activation is above 0")
    upper = ops.mul(ops.mul(above, x, "alpha_p·x"), x, "alpha_p·x²")
    upper = ops.add(upper, ops.scale(x, "beta·x"), "activation above 0")
    lower = ops.sub(ops.expm1(ops.minimum(x, "min(x, eps)"), "expm1(min(x, eps))"), x, "expm1(min(x, eps)) − x")
    lower = ops.mul(lower, below, "alpha_n·(expm1(min(x, eps)) − x)")
    lower = ops.add(lower, ops.scale(x, "beta·x"), "activation below 0")
    return ops.where(positive, upper, lower, "xielu")


def activation_name(m: Model) -> str:
    if m.architecture.activation_function:
        return m.architecture.activation_function
    return {"swiglu": "silu", "geglu": "gelu_pytorch_tanh", "reglu": "relu"}.get(
        m.architecture.activation, m.architecture.activation
    )


def gated_mlp(m: Model, x: Tensor, name: str = "mlp", width: str = "f", *, bias: bool | None = None) -> Tensor:
    """down(act(gate(x)) · up(x))."""
    biased = m.architecture.mlp_bias if bias is None else bias
    with m.tape.part("mlp", region="mlp"):
        out = m.tape.extent(width)
        if adapters.fuses_mlp(m):
            return adapters.fused_mlp(m, x, out)
        gate = activated(m, m.linear(x, f"{name}.gate_proj", out, bias=biased, label="gate"), activation_name(m))
        up = m.linear(x, f"{name}.up_proj", out, bias=biased, label="up")
        both = ops.mul(gate, up, "down projection input")
        del gate, up
        return m.linear(both, f"{name}.down_proj", x.shape[-1], bias=biased, label="mlp output")


def joined_mlp(m: Model, x: Tensor) -> Tensor:
    """down(up · act(gate)) with gate and up from one product (Phi-3, GLM)."""
    t, f, biased = m.tape, m.tape.extent("f"), m.architecture.mlp_bias
    with t.part("mlp", region="mlp"):
        both = m.linear(x, "gate_up_proj", t.extent("2", "f"), bias=biased, label="gate and up")
        gate, up = ops.split(both, (f, f))
        up = ops.mul(up, activated(m, gate, activation_name(m)), "down projection input")
        return m.linear(up, "down_proj", x.shape[-1], bias=biased, label="mlp output")


def plain_mlp(m: Model, x: Tensor, name: str = "mlp", width: str = "f") -> Tensor:
    """down(act(up(x)))."""
    with m.tape.part("mlp", region="mlp"):
        biased = m.architecture.mlp_bias
        up = activated(
            m, m.linear(x, f"{name}.up_proj", m.tape.extent(width), bias=biased, label="up"), activation_name(m)
        )
        return m.linear(up, f"{name}.down_proj", x.shape[-1], bias=biased, label="mlp output")


def causal_lm_loss(m: Model, logits: Tensor) -> Tensor:
    """transformers.loss.ForCausalLMLoss: upcasts the logits, shifts the labels, one cross-entropy over all tokens."""
    t = m.tape
    with t.part("loss"):
        wide = ops.to(logits, m.facts.logits_dtype, f"logits in {m.facts.logits_dtype}")
        padded = t.new(t.shape("b s1"), "int64", "padded labels")
        one = "b" in t.ones
        targets = padded if one else t.new(t.shape("b s"), "int64", "shifted labels")
        flat = ops.reshape(wide, (t.extent("b", "s"), t.extent("V")))
        del wide
        return ops.cross_entropy(flat, targets=targets)
