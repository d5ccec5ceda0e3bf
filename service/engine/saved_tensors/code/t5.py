"""T5: encoder and decoder with a relative position bias that each stack's first layer makes (modeling_t5.py)."""

from __future__ import annotations

from functools import partial
from math import prod

from service.engine.autograd import attention as sdpa
from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, parts
from service.engine.saved_tensors.code.model import Model


def norm(m: Model, x: Tensor, name: str) -> Tensor:
    """T5LayerNorm: the variance in fp32, the product cast to the weight's dtype."""
    with m.tape.part("norm", region="layernorm"):
        weight = m.vector(f"{name}.weight", x.shape[-1])
        wide = ops.to(x, "fp32", f"{name} input in fp32")
        scale = ops.rsqrt(ops.shift(ops.mean(ops.power(wide))), f"1/rms of {name}")
        del wide
        normal = ops.to(ops.mul(x, scale, f"{name} normalised"), weight.dtype, f"{name} normalised")
        return ops.mul(weight, normal, f"{name} output")


class Bias:
    """The position biases that layers of a stack hand on: for self attention and for cross attention."""

    def __init__(self) -> None:
        self.own: Tensor | None = None
        self.cross: Tensor | None = None

    def hand_on(self, m: Model, own: Tensor, cross: Tensor | None) -> None:
        """Keep what a layer returns; what it returns when it is computed again is thrown away."""
        if m.tape.replaying is None:
            self.own, self.cross = own, cross


def _heads(m: Model, x: Tensor, name: str) -> Tensor:
    d = m.tape.extent("d")
    return parts.to_heads(m.linear(x, name, (*m.heads, *d), label=name.rpartition(".")[2]), m.heads, d)


def _computed_bias(m: Model, stack: str) -> Tensor:
    """One value a head for every pair of positions, from a table of buckets."""
    t = m.tape
    buckets = t.new(t.shape("s s"), "int64", "buckets of relative positions")
    table = m.vector(f"{stack}.relative_attention_bias", ("buckets",), m.heads)
    values = ops.embedding(table, t.shape("s s"), "position bias", indices=buckets)
    turned = ops.transpose(ops.transpose(values, 0, 2), 1, 2)
    return _first_axis(turned)


def _first_axis(x: Tensor) -> Tensor:
    whole = prod(x.sizes)
    out = Tensor(x.tape, x.storage, ((), *x.shape), (whole, *x.strides), x.dtype)
    if x.needs_grad:
        out.node = x.tape.node(
            "unsqueeze",
            (x,),
            [],
            lambda grads, saved: [
                Tensor(grad.tape, grad.storage, grad.shape[1:], grad.strides[1:], grad.dtype) if grad else None
                for grad in grads
            ],
        )
    return out


def _zero_bias(m: Model) -> Tensor:
    """Cross attention has no bias: zeros, which ask for a gradient under checkpointing."""
    t = m.tape
    zeros = t.new(
        (((), m.heads, *t.shape("s s"))),
        parts.stream_dtype(m) if not m.facts.autocast else m.facts.compute,
        "zero position bias",
    )
    if m.facts.recomputed_layers:
        return t.leaf(zeros, "zero position bias")
    return zeros


def attend(
    m: Model, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, mask: Tensor | None, causal: bool
) -> Tensor:
    """Scores without scaling, plus the bias; sdpa takes bias and mask as one tensor of numbers."""
    t, rate = m.tape, m.architecture.attention_dropout
    with t.part("attention", region="core_attn"):
        if m.facts.attention == "eager":
            out = parts.eager_attention(m, query, key, value, mask, rate, softmax="plain", softcap=False, bias=bias)
        else:
            whole = bias
            if causal:
                before = t.new(t.shape("s s"), "bool", "causal mask")
                whole = ops.masked(bias, "position bias with mask", mask=before)
            whole = ops.contiguous(whole, "position bias for attention")
            out = sdpa.attend(query, key, value, chosen="efficient", mask=ops.autocast(whole))
        return ops.contiguous(ops.transpose(out, 1, 2), "attention output laid out by token")


def attention(
    m: Model, x: Tensor, name: str, *, source: Tensor, bias: Tensor, mask: Tensor | None, causal: bool
) -> Tensor:
    """Queries from x, keys and values from `source`."""
    with m.tape.part("attention"):
        query, key, value = _heads(m, x, f"{name}.q"), _heads(m, source, f"{name}.k"), _heads(m, source, f"{name}.v")
        out = attend(m, query, key, value, bias, mask, causal)
        return m.linear(parts.from_heads(out), f"{name}.o", x.shape[-1], label=f"{name} branch")


def feed_forward(m: Model, x: Tensor) -> Tensor:
    """Plain or gated, with dropout before the second linear."""
    t, a = m.tape, m.architecture
    with t.part("mlp", region="mlp"):
        function = a.activation_function or ("gelu_new" if a.gated else "relu")
        if a.gated:
            inner = parts.activated(m, m.linear(x, "wi_0", t.extent("f"), label="gate"), function)
            inner = ops.mul(inner, m.linear(x, "wi_1", t.extent("f"), label="up"), "gated up")
        else:
            inner = parts.activated(m, m.linear(x, "wi", t.extent("f"), label="up"), function)
        inner = ops.dropout(inner, a.ffn_dropout or a.dropout, "dropped activation")
        return m.linear(inner, "wo", x.shape[-1], label="mlp output")


def block(
    m: Model, x: Tensor, *, stack: str, bias: Bias, given: Tensor | None, given_cross: Tensor | None,
    mask: Tensor | None, source: Tensor | None,
) -> Tensor:  # fmt: skip
    """One layer; `given` biases come from the layer before, else this layer makes them."""
    rate, causal = m.architecture.dropout, source is not None
    normal = norm(m, x, f"{stack} attention norm")
    own = given if given is not None else _computed_bias(m, stack)
    out = attention(m, normal, f"{stack} self attention", source=normal, bias=own, mask=mask, causal=causal)
    del normal
    hidden = ops.add(x, ops.dropout(out, rate, "attention branch dropout"), "residual stream")
    del out
    zeros: Tensor | None = None
    if source is not None:
        normal = norm(m, hidden, "cross attention norm")
        zeros = given_cross if given_cross is not None else _zero_bias(m)
        out = attention(m, normal, "cross attention", source=source, bias=zeros, mask=None, causal=False)
        del normal
        hidden = ops.add(hidden, ops.dropout(out, rate, "cross attention branch dropout"), "residual stream")
        del out
        del m.probabilities[:-1]
    bias.hand_on(m, own, zeros)
    out = feed_forward(m, norm(m, hidden, f"{stack} mlp norm"))
    return ops.add(hidden, ops.dropout(out, rate, "mlp branch dropout"), "residual stream")


def stack_of(m: Model, x: Tensor, name: str, home: int, source: Tensor | None) -> tuple[Tensor, int]:
    """Dropout, layers (first, middle, last), final norm, dropout; the number of the next segment."""
    a = m.architecture
    layers = a.layers if source is not None else a.encoder_layers
    mask = parts.causal_mask(m) if source is not None and m.facts.attention == "eager" else None
    rate, bias = a.dropout, Bias()
    x = ops.dropout(x, rate, f"{name} embedding dropout")
    m.recomputed = m.facts.recomputed_layers > 0
    for _ in range(min(layers, 3)):
        x = m.enter(home, x)
        call = partial(
            block, m, stack=name, bias=bias, given=bias.own, given_cross=bias.cross, mask=mask, source=source
        )
        others = [tensor for tensor in (mask, bias.own, source, bias.cross) if tensor is not None]
        x = m.called(call, x, others)
        del call, others
        home += 1
    bias.own = bias.cross = None
    x = m.enter(home, x)
    x = norm(m, x, f"{name} final norm")
    return ops.dropout(x, rate, f"{name} output dropout"), home


def seq2seq_lm(m: Model) -> Tensor:
    """T5ForConditionalGeneration.forward with labels: the loss is taken in the dtype of the logits."""
    t, a = m.tape, m.architecture
    encoded, home = stack_of(m, decoder.embed(m), "encoder", 1, None)
    ids = t.new(t.shape("b s"), "int64", "shifted decoder ids")
    table = m.vector("embedding table", t.extent("V"), t.extent("h"))
    x = ops.embedding(table, t.shape("b s"), "embedded decoder tokens", indices=ids)
    x, home = stack_of(m, x, "decoder", home + 1, encoded)
    if a.tied_embeddings:
        x = ops.scale(x, "scaled decoder output")
    logits = decoder.head(m, x)
    with t.part("loss"):
        flat = ops.reshape(logits, (t.extent("b", "s"), t.extent("V")))
        return ops.cross_entropy(flat, targets=t.external(t.shape("b s"), "int64"))
