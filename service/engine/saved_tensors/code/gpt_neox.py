"""GPT-NeoX, Pythia: parallel branches, partly rotated heads, one product for q, k and v (modeling_gpt_neox.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Each head's q, k and v lie side by side in one product, which the values keep whole."""
    t, a, d = m.tape, m.architecture, m.tape.extent("d")
    assert at.cos is not None and at.sin is not None
    with t.part("attention"):
        fused = m.linear(x, "query_key_value", t.extent(*m.heads, "3", *d), bias=True, label="query, key and value")
        fused = parts.to_heads(fused, m.heads, t.extent("3", "d"))
        query, key, value = ops.split(fused, (d, d, d))
        query, key = (
            parts.rotate_part(part, at.cos, at.sin, f"rotated {name}", turned=t.extent("r"), rest=t.extent("p"))
            for part, name in ((query, "query"), (key, "key"))
        )
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout)
        return m.linear(parts.from_heads(out), "dense", x.shape[-1], bias=True, label="attention branch")


def mlp(m: Model, x: Tensor) -> Tensor:
    """Two linears around a fused GELU."""
    with m.tape.part("mlp", region="mlp"):
        hidden = m.linear(x, "dense_h_to_4h", m.tape.extent("f"), bias=True, label="up")
        hidden = parts.activated(m, hidden, m.architecture.activation_function or "gelu")
        return m.linear(hidden, "dense_4h_to_h", x.shape[-1], bias=True, label="mlp output")


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Both branches read the layer's input, each through a norm of its own (or one after the other)."""
    rate = m.architecture.dropout
    branch = attention(m, parts.norm(m, x, "attention norm"), at)
    branch = ops.dropout(branch, rate, "attention branch dropout")
    if m.architecture.parallel_block:
        hidden = mlp(m, parts.norm(m, x, "mlp norm"))
        hidden = ops.dropout(hidden, rate, "mlp branch dropout")
        return ops.add(ops.add(hidden, branch, "sum of the branches"), x, "residual stream")
    branch = ops.add(branch, x, "residual stream")
    hidden = mlp(m, parts.norm(m, branch, "mlp norm"))
    hidden = ops.dropout(hidden, rate, "mlp branch dropout")
    return ops.add(hidden, branch, "residual stream")


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss."""
    hidden = decoder.decoder(
        m, layer, positions=lambda model: parts.positions(model, "r"), dropout=m.architecture.dropout
    )
    return losses.loss(m, hidden)
