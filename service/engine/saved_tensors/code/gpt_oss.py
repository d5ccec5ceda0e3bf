"""gpt-oss: attention sinks in an eager softmax, experts with biases and a clamped gate (modeling_gpt_oss.py)."""

from __future__ import annotations

from service.engine.autograd import attention as sdpa
from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, moe, parts
from service.engine.saved_tensors.code.model import Around, Model


def _turn(x: Tensor, at: Around, label: str) -> Tensor:
    """Two halves, four products; the tables have one value a pair."""
    assert at.cos is not None and at.sin is not None
    half = tuple(f"{symbol}2" for symbol in x.shape[-1])
    first, second = ops.split(x, (half, half))
    left = ops.sub(ops.mul(first, at.cos), ops.mul(second, at.sin), "turned first half")
    right = ops.add(ops.mul(second, at.cos), ops.mul(first, at.sin), "turned second half")
    return ops.cat((left, right), x.shape, label)


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Queries and keys rotated by halves; one more column of scores a head, the sink."""
    t, a, d = m.tape, m.architecture, m.tape.extent("d")
    with t.part("attention"):
        query, key, value = (
            parts.to_heads(m.linear(x, f"{name[0]}_proj", (*heads, *d), bias=a.attention_bias, label=name), heads, d)
            for name, heads in (("query", m.heads), ("key", m.kv_heads), ("value", m.kv_heads))
        )
        query, key = _turn(query, at, "rotated query"), _turn(key, at, "rotated key")
        with t.part("attention", region="core_attn"):
            if m.facts.attention == "flash":
                out = sdpa.attend(query, key, value, chosen="flash")
            else:
                out = _with_sinks(m, query, key, value, at.mask)
            out = ops.contiguous(ops.transpose(out, 1, 2), "attention output laid out by token")
        return m.linear(
            parts.from_heads(out), "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch"
        )


def _with_sinks(m: Model, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    t = m.tape
    group = tuple(symbol for symbol in m.heads if symbol not in m.kv_heads)
    keys, values = sdpa.repeat_heads(key, m.heads, group), sdpa.repeat_heads(value, m.heads, group)
    weights = ops.scale(ops.matmul(query, ops.transpose(keys, 2, 3), "attention scores"), "scaled scores")
    if mask is not None:
        weights = ops.add(weights, mask, "masked scores")
    sinks = m.vector("sinks", m.heads)
    column = ops.expand(ops.reshape(sinks, ((), m.heads, (), ())), (*weights.shape[:3], ()))
    wide = ops.cat((weights, column), (*weights.shape[:3], t.extent("s+1")), "scores and sinks")
    wide = ops.sub(wide, ops.row_maximum(wide, "largest score"), "scores below the largest")
    chances = ops.softmax(wide, "attention probabilities with sinks")
    scores = ops.slice_of(chances, t.extent("s"))
    scores = ops.dropout(scores, m.architecture.attention_dropout, "attention dropout")
    weights = ops.to(scores, values.dtype, "attention probabilities cast")
    m.probabilities.append(weights)
    return ops.matmul(weights, values, "attention output")


def routed(m: Model, x: Tensor) -> Tensor:
    """The best k logits, softmax over them, experts with a clamped gate."""
    t = m.tape
    with t.part("moe", region="moe"):
        flat = ops.reshape(x, (t.extent("b", "s"), x.shape[-1]))
        with t.part("router", region="moe"):
            logits = m.linear(flat, "router", t.extent("E"), bias=True, label="router logits")
            values, places = ops.top_k(logits, t.extent("k"), "chosen router logits")
            weights = ops.to(ops.softmax(values, "router weights"), values.dtype, "router weights")
        return ops.reshape(moe.experts(m, flat, weights, places, bias=True, gate=_gate), x.shape)


def _gate(m: Model, both: Tensor) -> Tensor:
    """(clamp(up) + 1) · clamp(gate) · sigmoid(α·gate), of interleaved columns."""
    width = m.tape.extent("m")
    gate, up = ops.slice_of(both, width), ops.slice_of(both, width)
    gate, up = ops.clamp(gate, "clamped gate"), ops.clamp(up, "clamped up")
    glu = ops.mul(gate, ops.sigmoid(ops.scale(gate, "scaled gate"), "sigmoid of the gate"), "activated gate")
    return ops.mul(ops.shift(up, "up + 1"), glu, "input of the experts' down projection")


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm layer, every one routed."""
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = routed(m, parts.norm(m, hidden, "mlp norm"))
    return ops.add(residual, hidden, "residual stream")


def _positions(m: Model) -> tuple[Tensor, Tensor]:
    """One value a pair of elements."""
    return parts.positions(m, "d", half=True)


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss."""
    hidden = decoder.decoder(m, layer, positions=_positions)
    return losses.loss(m, hidden)
