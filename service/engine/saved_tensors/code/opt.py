"""OPT: learned positions for every sequence of the batch, scaled queries, ReLU (modeling_opt.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Queries are scaled before they are split into heads."""
    t, a = m.tape, m.architecture
    width, bias, d = (*m.heads, *m.tape.extent("d")), a.attention_bias, t.extent("d")
    with t.part("attention"):
        query = ops.scale(m.linear(x, "q_proj", width, bias=bias, label="unscaled query"), "query")
        query = parts.to_heads(query, m.heads, d)
        key, value = (
            parts.to_heads(part, m.heads, d)
            for part in [m.linear(x, f"{name[0]}_proj", width, bias=bias, label=name) for name in ("key", "value")]
        )
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout)
        return m.linear(
            parts.from_heads(out), "out_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch"
        )


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Norms before the branches (after the sums in OPT-350M), dropout on both."""
    a, t = m.architecture, m.tape
    first = a.norm_placement == "pre"
    hidden = attention(m, parts.norm(m, x, "attention norm") if first else x, at)
    hidden = ops.dropout(hidden, a.dropout, "attention branch dropout")
    hidden = ops.add(x, hidden, "residual stream")
    if not first:
        hidden = parts.norm(m, hidden, "attention norm")
    hidden = ops.reshape(hidden, (t.extent("b", "s"), x.shape[-1]))
    residual = hidden
    if first:
        hidden = parts.norm(m, hidden, "mlp norm")
    with t.part("mlp", region="mlp"):
        hidden = m.linear(hidden, "fc1", t.extent("f"), bias=a.mlp_bias, label="up")
        hidden = parts.activated(m, hidden, a.activation_function or "relu")
        hidden = m.linear(hidden, "fc2", x.shape[-1], bias=a.mlp_bias, label="mlp output")
    hidden = ops.dropout(hidden, a.dropout, "mlp branch dropout")
    hidden = ops.reshape(ops.add(residual, hidden, "residual stream"), x.shape)
    return hidden if first else parts.norm(m, hidden, "mlp norm")


def causal_lm(m: Model) -> Tensor:
    """OPTForCausalLM.forward with labels."""
    return losses.loss(m, model(m))


def model(m: Model) -> Tensor:
    """Tokens and positions, projected where the embedding is narrower, layers, final norm."""
    t, a = m.tape, m.architecture
    narrow = a.embedding_size is not None and a.embedding_size != a.hidden_size
    embedded = decoder.embed(m, width="we" if narrow else "h")
    ids = t.new(t.shape("b s"), "int64", "position ids")
    mask = parts.causal_mask(m)
    shifted = t.new(t.shape("b s"), "int64", "position ids with their offset")
    table = m.vector("position table", t.extent("P"), t.extent("h"))
    placed = ops.embedding(table, t.shape("b s"), "embedded positions", indices=shifted)
    del shifted
    if narrow:
        embedded = m.linear(embedded, "project_in", t.extent("h"), label="projected embedding")
    x = ops.add(embedded, placed, "tokens and positions")
    x = decoder.through_layers(m, layer, x, dict.fromkeys(("full", "sliding"), Around(mask, held=(ids,))))
    if a.final_norm:
        x = parts.norm(m, x, "final norm")
    return m.linear(x, "project_out", t.extent("we"), label="projected output") if narrow else x
