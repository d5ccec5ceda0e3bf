"""BLOOM: ALiBi, a GELU that keeps only its input, one product for q, k and v (modeling_bloom.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, residual: Tensor, at: Around) -> Tensor:
    """Always eager: scores on top of the ALiBi bias, softmax in fp32."""
    t, d = m.tape, m.tape.extent("d")
    batch = t.extent("b", "kv", "g")
    assert at.held
    with t.part("attention"):
        fused = m.linear(x, "query_key_value", t.extent(*m.heads, "3", *d), bias=True, label="query, key and value")
        fused = ops.reshape(fused, (*x.shape[:2], m.heads, ("3",), d))
        query, key, value = (ops.transpose(ops.select(fused, 3), 1, 2) for _ in range(3))
        query, key, value = (
            ops.reshape(part, (batch, t.extent("s"), d), f"{name} laid out by head")
            for part, name in ((query, "query"), (key, "key"), (value, "value"))
        )
        with t.part("attention", region="core_attn"):
            scores = ops.bias_bmm(at.held[0], query, ops.transpose(key, 1, 2), "attention scores")
            weights = ops.reshape(scores, t.shape("b kv*g s s"))
            if at.mask is not None:
                weights = ops.add(weights, at.mask, "masked scores")
            chances = ops.to(
                ops.softmax(weights, "attention probabilities", dtype="fp32"),
                query.dtype,
                "attention probabilities cast",
            )
            chances = ops.dropout(chances, m.architecture.attention_dropout, "attention dropout")
            m.probabilities.append(chances)
            rows = ops.reshape(chances, (batch, *t.shape("s s")))
            out = ops.bmm(ops.autocast(rows), ops.autocast(value), "attention output by head")
            out = ops.reshape(out, t.shape("b kv*g s d"))
        out = parts.from_heads(ops.transpose(out, 1, 2))
        out = m.linear(out, "dense", x.shape[-1], bias=True, label="attention branch")
        return ops.add(
            residual, ops.dropout(out, m.architecture.dropout, "attention branch dropout"), "residual stream"
        )


def gelu(x: Tensor) -> Tensor:
    """GeLUFunction: keeps its input and computes the tanh again in backward."""
    return ops.custom(x, "gelu", _gelu_forward, _gelu_backward)


def _inner(x: Tensor) -> Tensor:
    """tanh(0.797·x·(1 + 0.0447·x²)), an operation at a time."""
    outer = ops.scale(x)
    inner = ops.mul(ops.scale(x), x)
    inner = ops.shift(inner)
    return ops.tanh(ops.mul(outer, inner))


def _gelu_forward(x: Tensor) -> Tensor:
    half = ops.scale(x, "half of it")
    return ops.mul(half, ops.shift(_inner(x)), "gelu")


def _gelu_backward(grad: Tensor, x: Tensor) -> Tensor:
    """0.5·x·((1 − t²)·(0.797 + 0.107·x²)) + 0.5·(1 + t) with t the tanh; operands live as long as in the expression."""
    turned = _inner(x)
    curved = ops.mul(
        ops.scale(x),
        ops.mul(ops.scale(ops.mul(turned, turned)), ops.shift(ops.mul(ops.scale(x), x))),
    )
    return ops.mul(ops.add(curved, ops.scale(ops.shift(turned))), grad, "gradient of gelu")


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm layer."""
    hidden = attention(m, parts.norm(m, x, "attention norm"), x, at)
    normal = parts.norm(m, hidden, "mlp norm")
    with m.tape.part("mlp", region="mlp"):
        inner = gelu(m.linear(normal, "dense_h_to_4h", m.tape.extent("f"), bias=True, label="up"))
        out = m.linear(inner, "dense_4h_to_h", x.shape[-1], bias=True, label="mlp output")
        del inner
    return ops.add(hidden, ops.dropout(out, m.architecture.dropout, "mlp branch dropout"), "residual stream")


def causal_lm(m: Model) -> Tensor:
    """BloomForCausalLM.forward with labels."""
    return losses.loss(m, model(m))


def model(m: Model) -> Tensor:
    """Normalised embeddings, one ALiBi bias for all layers."""
    t = m.tape
    embedded = decoder.embed(m)
    x = parts.norm(m, embedded, "embedding norm")
    alibi = t.new(t.shape("b*kv*g 1 s"), parts.stream_dtype(m), "ALiBi bias")
    mask = t.new(t.shape("b 1 s s"), parts.stream_dtype(m), "causal mask")
    x = decoder.through_layers(
        m, layer, x, dict.fromkeys(("full", "sliding"), Around(mask, held=(alibi,))), returns_probabilities=True
    )
    return parts.norm(m, x, "final norm")
