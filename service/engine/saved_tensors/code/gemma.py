"""Gemma 1, 2 and 3 (text): norms in fp32, sandwich norms, soft caps, local and global layers."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, llama, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """q/k norms come after the heads were turned; scores may be capped."""
    t, a, d = m.tape, m.architecture, m.tape.extent("d")
    assert at.cos is not None and at.sin is not None
    with t.part("attention"):
        query = parts.to_heads(m.linear(x, "q_proj", (*m.heads, *d), bias=a.attention_bias, label="query"), m.heads, d)
        key = parts.to_heads(
            m.linear(x, "k_proj", (*m.kv_heads, *d), bias=a.attention_bias, label="key"), m.kv_heads, d
        )
        value = m.linear(x, "v_proj", (*m.kv_heads, *d), bias=a.attention_bias, label="value")
        value = parts.to_heads(value, m.kv_heads, d)
        if a.qk_norm == "head":
            query, key = parts.norm(m, query, "q_norm"), parts.norm(m, key, "k_norm")
        query = parts.rotate(query, at.cos, at.sin, "rotated query")
        key = parts.rotate(key, at.cos, at.sin, "rotated key")
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout, softcap=a.attention_softcap)
        return m.linear(
            parts.from_heads(out), "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch"
        )


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Norms before and after each branch (only before, in the first Gemma)."""
    sandwich = m.architecture.norms_per_layer == 4
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    if sandwich:
        hidden = parts.norm(m, hidden, "attention output norm")
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = parts.norm(m, hidden, "mlp norm")
    hidden = llama.feed_forward(m, hidden)
    if sandwich:
        hidden = parts.norm(m, hidden, "mlp output norm")
    return ops.add(residual, hidden, "residual stream")


def model(m: Model) -> Tensor:
    """Scaled embeddings; masks of both kinds, positions for each kind of layer that there is."""
    t = m.tape
    embedded = decoder.embed(m)
    x = ops.scale(embedded, "scaled embedding")
    del embedded
    stream = x
    ids = t.new(t.shape("s"), "int64", "position ids")
    local = m.architecture.code != "gemma"
    masks: dict[str, Tensor | None] = {"full": parts.causal_mask(m)}
    if local:
        masks["sliding"] = parts.causal_mask(m, sliding=True)
    tables: dict[str, tuple[Tensor, Tensor]] = {}
    for kind in {kind.attention for kind in m.kinds}:
        shared = next(iter(tables.values()), None)
        tables[kind] = parts.positions(m) if shared is None or "gemma3" in m.architecture.code else shared
    around = {kind: Around(masks[kind], cos, sin, (ids,)) for kind, (cos, sin) in tables.items()}
    x = decoder.through_layers(m, layer, x, around)
    del stream
    return parts.norm(m, x, "final norm")


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss; Gemma 2 caps the logits."""
    logits = decoder.head(m, model(m))
    if m.architecture.logit_softcap:
        logits = ops.scale(logits, "logits over the cap")
        logits = ops.tanh(logits, "capped logits (tanh)")
        logits = ops.scale(logits, "capped logits")
    return parts.causal_lm_loss(m, logits)
