"""Falcon: parallel branches; multi-query, or grouped heads written out (modeling_falcon.py)."""

from __future__ import annotations

from service.engine.autograd import attention as sdpa
from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def _heads(m: Model, fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(b, s, heads, d) queries, keys and values."""
    t, d = m.tape, m.tape.extent("d")
    b, s = fused.shape[:2]
    if m.kv_heads == m.heads:
        fused = ops.reshape(fused, (b, s, m.heads, ("3",), d))
        return ops.select(fused, 3), ops.select(fused, 3), ops.select(fused, 3)
    if not m.kv_heads:
        fused = ops.reshape(fused, (b, s, ("g+2",), d))
        return ops.slice_of(fused, m.heads, axis=2), _picked(fused, 2, "key"), _picked(fused, 2, "value")
    group = t.extent("g")
    fused = ops.reshape(fused, (b, s, m.kv_heads, ("g+2",), d))
    query = ops.slice_of(fused, group, axis=3)
    key, value = (ops.expand(_picked(fused, 3, name), (b, s, m.kv_heads, group, d)) for name in ("key", "value"))
    whole = (b, s, m.heads, d)
    return tuple(  # type: ignore[return-value]
        ops.reshape(part, whole, f"{name} of every head")
        for part, name in ((query, "query"), (key, "key"), (value, "value"))
    )


def _picked(fused: Tensor, axis: int, name: str) -> Tensor:
    """fused[..., [i], :]: a copy, and the index that was used."""
    index = fused.tape.new((), "int64", "index of a head")
    return ops.picked(fused, axis, index, name)


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Rotary positions, then torch's fused attention or scores in the dtype of the stream."""
    t, a, d = m.tape, m.architecture, m.tape.extent("d")
    with t.part("attention"):
        width = t.extent(*m.heads, "3", *d) if m.kv_heads == m.heads else t.extent(*m.kv_heads, "g+2", *d)
        fused = m.linear(x, "query_key_value", width, bias=a.attention_bias, label="query, key and value")
        query, key, value = (ops.transpose(part, 1, 2) for part in _heads(m, fused))
        if at.cos is not None and at.sin is not None:
            query, key = (
                parts.rotate(query, at.cos, at.sin, "rotated query"),
                parts.rotate(key, at.cos, at.sin, "rotated key"),
            )
        with t.part("attention", region="core_attn"):
            if m.facts.attention == "eager":
                out = _eager(m, query, key, value, at.mask, x.dtype)
            else:
                chosen = sdpa.kernel(ops.autocast(query), key, value, masked=at.mask is not None)
                t.grouped_math = False
                out = sdpa.attend(query, key, value, chosen=chosen, mask=at.mask)
            out = ops.transpose(out, 1, 2)
        return m.linear(
            parts.from_heads(out), "dense", x.shape[-1], bias=a.attention_out_bias, label="attention branch"
        )


def _eager(m: Model, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dtype: str) -> Tensor:
    keys, values = _for_every_head(m, key), _for_every_head(m, value)
    scores = ops.scale_in_place(ops.matmul(query, ops.transpose(keys, 2, 3), "attention scores"))
    assert mask is not None
    weights = ops.softmax(ops.add(scores, mask, "masked scores"), "attention probabilities", dtype=dtype)
    m.probabilities.append(weights)
    return ops.matmul(weights, values, "attention output")


def _for_every_head(m: Model, x: Tensor) -> Tensor:
    return x if x.shape[1] == m.heads else ops.expand(x, (x.shape[0], m.heads, *x.shape[2:]))


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Attention and MLP side by side (one or two norms), or one after the other."""
    a = m.architecture
    normal = parts.norm(m, x, "attention norm")
    for_mlp = parts.norm(m, x, "mlp norm") if a.parallel_block and a.norms_per_layer == 2 else normal
    branch = attention(m, normal, at)
    residual = x
    if not a.parallel_block:
        residual = ops.add(x, ops.dropout(branch, a.attention_dropout, "attention branch dropout"), "residual stream")
        for_mlp = parts.norm(m, residual, "mlp norm")
    with m.tape.part("mlp", region="mlp"):
        hidden = m.linear(for_mlp, "dense_h_to_4h", m.tape.extent("f"), bias=a.mlp_bias, label="up")
        hidden = parts.activated(m, hidden, a.activation_function or "gelu")
        hidden = m.linear(hidden, "dense_4h_to_h", x.shape[-1], bias=a.mlp_bias, label="mlp output")
    if a.parallel_block:
        hidden = ops.add_in_place(hidden, branch)
    return ops.add(residual, ops.dropout(hidden, a.dropout, "mlp branch dropout"), "residual stream")


def causal_lm(m: Model) -> Tensor:
    """FalconForCausalLM.forward with labels."""
    hidden = decoder.decoder(m, layer, mask=_mask, returns_probabilities=True)
    return losses.loss(m, hidden)


def _mask(m: Model) -> Tensor:
    """The mask is always made; eager attention adds numbers, sdpa takes bools."""
    eager = m.facts.attention == "eager"
    made = parts.causal_mask(m) if eager else parts.bool_mask(m)
    assert made is not None
    return made
