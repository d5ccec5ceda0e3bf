"""GPT-2: learned positions, dropout everywhere, GELU written in Python (modeling_gpt2.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm layer."""
    rate = m.architecture.dropout
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    hidden = ops.add(ops.dropout(hidden, rate, "attention branch dropout"), x, "residual stream")
    residual = hidden
    hidden = parts.norm(m, hidden, "mlp norm")
    with m.tape.part("mlp", region="mlp"):
        hidden = m.linear(hidden, "c_fc", m.tape.extent("f"), bias=True, label="up")
        hidden = parts.activated(m, hidden, m.architecture.activation_function or "gelu_new")
        hidden = m.linear(hidden, "mlp.c_proj", x.shape[-1], bias=True, label="mlp output")
    hidden = ops.dropout(hidden, rate, "mlp branch dropout")
    return ops.add(residual, hidden, "residual stream")


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Queries, keys and values split from one product; softmax in the dtype of the scores."""
    t, a = m.tape, m.architecture
    width: Extent = (*m.heads, *t.extent("d"))
    with t.part("attention"):
        fused = m.linear(x, "c_attn", t.extent("3", *width), bias=True, label="query, key and value")
        query, key, value = (
            parts.to_heads(part, m.heads, t.extent("d")) for part in ops.split(fused, (width, width, width))
        )
        del fused
        eager = m.facts.attention == "eager"
        out = parts.attention(
            m, query, key, value, at.mask, dropout=a.attention_dropout, softmax="cast", contiguous=not eager
        )
        return m.linear(parts.from_heads(out), "c_proj", x.shape[-1], bias=True, label="attention branch")


def causal_lm(m: Model) -> Tensor:
    """GPT2LMHeadModel.forward with labels."""
    hidden = model(m)
    return losses.loss(m, hidden)


def model(m: Model) -> Tensor:
    """Token and position embeddings, dropout, layers, final norm."""
    t, a = m.tape, m.architecture
    embedded = decoder.embed(m)
    ids = t.new(t.shape("1 s"), "int64", "position ids")
    table = m.vector("position table", t.extent("P"), t.extent("h"))
    placed = ops.embedding(table, t.shape("1 s"), "embedded positions", indices=ids)
    mask = parts.causal_mask(m)
    x = ops.add(embedded, placed, "tokens and positions")
    rate = a.dropout if a.embedding_dropout is None else a.embedding_dropout
    x = ops.dropout(x, rate, "embedding dropout")
    x = decoder.through_layers(m, layer, x, dict.fromkeys(("full", "sliding"), Around(mask, by_position=True)))
    return parts.norm(m, x, "final norm")
