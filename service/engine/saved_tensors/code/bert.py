"""BERT: post-norm encoder, three embedding tables, masked-token head (modeling_bert.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, parts
from service.engine.saved_tensors.code.model import Around, Model


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Norms after the sums, dropout on both branches."""
    a, t, d = m.architecture, m.tape, m.tape.extent("d")
    with t.part("attention"):
        query, key, value = (
            parts.to_heads(m.linear(x, name, (*m.heads, *d), bias=True, label=name), m.heads, d)
            for name in ("query", "key", "value")
        )
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout, softmax="plain")
        del query, key, value
        out = m.linear(parts.from_heads(out), "output.dense", x.shape[-1], bias=True, label="attention branch")
    out = ops.dropout(out, a.dropout, "attention branch dropout")
    hidden = parts.norm(m, ops.add(out, x, "residual stream"), "attention norm")
    with t.part("mlp", region="mlp"):
        out = m.linear(hidden, "intermediate.dense", t.extent("f"), bias=True, label="up")
        out = parts.activated(m, out, a.activation_function or "gelu")
        out = m.linear(out, "mlp.output.dense", x.shape[-1], bias=True, label="mlp output")
    out = ops.dropout(out, a.dropout, "mlp branch dropout")
    return parts.norm(m, ops.add(out, hidden, "residual stream"), "mlp norm")


def embeddings(m: Model) -> Tensor:
    """Words, segments and positions, summed, normalised, dropped."""
    t, a = m.tape, m.architecture
    words = decoder.embed(m)
    whole = words
    if a.token_types:
        kinds = t.new(t.shape("1 s"), "int64", "token type ids")
        table = m.vector("token type table", t.extent("T"), t.extent("h"))
        whole = ops.add(words, ops.embedding(table, t.shape("b s"), "embedded token types", indices=kinds))
    table = m.vector("position table", t.extent("P"), t.extent("h"))
    whole = ops.add(whole, _positions(m, table), "sum of embeddings")
    whole = parts.norm(m, whole, "embedding norm")
    rate = a.dropout if a.embedding_dropout is None else a.embedding_dropout
    return ops.dropout(whole, rate, "embedding dropout")


def _positions(m: Model, table: Tensor) -> Tensor:
    """BERT reads positions from a buffer; RoBERTa counts them in every sequence, past the padding."""
    t = m.tape
    if m.architecture.code == "bert":
        return ops.embedding(table, t.shape("1 s"), "embedded positions")
    ids = t.new(t.shape("b s"), "int64", "position ids")
    return ops.embedding(table, t.shape("b s"), "embedded positions", indices=ids)


def masked_lm(m: Model) -> Tensor:
    """BertForMaskedLM.forward with labels: the loss is taken in the dtype of the logits."""
    t, a = m.tape, m.architecture
    x = embeddings(m)
    x = decoder.through_layers(m, layer, x, dict.fromkeys(("full", "sliding"), Around()))
    with t.part("head"):
        hidden = m.linear(x, "transform.dense", x.shape[-1], bias=True, label="transformed output")
        hidden = parts.activated(m, hidden, a.activation_function or "gelu")
        hidden = parts.norm(m, hidden, "transform norm")
        weight = m.vector("embedding table", t.extent("V"), t.extent("h"))
        logits = ops.product(hidden, weight, m.vector("head.bias", t.extent("V")), "logits")
    with t.part("loss"):
        flat = ops.reshape(logits, (t.extent("b", "s"), t.extent("V")))
        return ops.cross_entropy(flat, targets=t.external(t.shape("b s"), "int64"))
