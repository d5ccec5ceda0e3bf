"""Phi-3: one projection for q, k and v, one for gate and up (modeling_phi3.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Queries, keys and values are slices of one product; the values keep it whole."""
    t, d = m.tape, m.tape.extent("d")
    partial = m.architecture.rotary_fraction < 1
    assert at.cos is not None and at.sin is not None
    with t.part("attention"):
        fused = m.linear(x, "qkv_proj", t.extent("qkv"), label="query, key and value")
        query, key, value = (
            parts.to_heads(ops.slice_of(fused, (*heads, *d)), heads, d) for heads in (m.heads, m.kv_heads, m.kv_heads)
        )
        turned, rest = (t.extent("r"), t.extent("p")) if partial else (d, ())
        if partial:
            query, key = (
                parts.rotate_part(part, at.cos, at.sin, f"rotated {name}", turned=turned, rest=rest)
                for part, name in ((query, "query"), (key, "key"))
            )
        else:
            query, key = (
                ops.cat(
                    (parts.rotate(ops.slice_of(part, d), at.cos, at.sin, f"rotated {name}"),),
                    part.shape,
                    f"rotated {name}",
                )
                for part, name in ((query, "query"), (key, "key"))
            )
        out = parts.from_heads(parts.attention(m, query, key, value, at.mask, dropout=m.architecture.attention_dropout))
        return m.linear(out, "o_proj", x.shape[-1], label="attention branch")


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm layer with dropout on both branches."""
    rate = m.architecture.dropout
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    hidden = ops.add(x, ops.dropout(hidden, rate, "attention branch dropout"), "residual stream")
    residual = hidden
    hidden = parts.joined_mlp(m, parts.norm(m, hidden, "mlp norm"))
    return ops.add(residual, ops.dropout(hidden, rate, "mlp branch dropout"), "residual stream")


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss."""
    symbol = "r" if m.architecture.rotary_fraction < 1 else "d"
    hidden = decoder.decoder(m, layer, positions=lambda model: parts.positions(model, symbol))
    return losses.loss(m, hidden)
