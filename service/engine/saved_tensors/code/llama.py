"""Llama and what is built like it: Mistral, Qwen2, Qwen3 (modeling_llama.py and its descendants)."""

from __future__ import annotations

from functools import partial

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import parts
from service.engine.saved_tensors.code.model import Model


def attention(m: Model, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
    """Separate projections, optional q/k norms over each head, rotary positions."""
    t, a = m.tape, m.architecture
    d, bias = t.extent("d"), a.attention_bias
    with t.part("attention"):
        query = m.linear(x, "q_proj", (*m.heads, *d), bias=bias, label="query")
        query = heads_of(m, query, m.heads, "q_norm")
        key = heads_of(m, m.linear(x, "k_proj", (*m.kv_heads, *d), bias=bias, label="key"), m.kv_heads, "k_norm")
        value = parts.to_heads(m.linear(x, "v_proj", (*m.kv_heads, *d), bias=bias, label="value"), m.kv_heads, d)
        if m.kind.rotary:
            query, key = parts.rotate(query, cos, sin, "rotated query"), parts.rotate(key, cos, sin, "rotated key")
        out = parts.attention(m, query, key, value, mask, dropout=a.attention_dropout)
        out = parts.from_heads(out)
        return m.linear(out, "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch")


def heads_of(m: Model, x: Tensor, heads: tuple[str, ...], norm: str) -> Tensor:
    """Split into heads, normalise each where the model does, and bring heads before tokens."""
    d = m.tape.extent("d")
    split = ops.reshape(x, (*x.shape[:2], heads, d))
    if m.architecture.qk_norm == "head":
        split = parts.rms_norm(m, split, norm)
    return ops.transpose(split, 1, 2)


def layer(m: Model, x: Tensor, *, ids: Tensor, cos: Tensor, sin: Tensor, mask: Tensor | None) -> Tensor:
    """Pre-norm decoder layer."""
    hidden = attention(m, parts.norm(m, x, "attention norm"), cos, sin, mask)
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = parts.norm(m, hidden, "mlp norm")
    hidden = parts.gated_mlp(m, hidden)
    return ops.add(residual, hidden, "residual stream")


def decoder(m: Model) -> Tensor:
    """LlamaModel.forward."""
    t = m.tape
    embedded = embed(m)
    ids = t.new(t.shape("s"), "int64", "position ids")
    masks = {kind.attention: parts.causal_mask(m, sliding=kind.attention == "sliding") for kind in m.kinds}
    cos, sin = parts.positions(m)
    x = embedded
    for index, kind in enumerate(m.kinds):
        x = m.enter_layer(index, x)
        x = m.checkpointed(partial(layer, m, ids=ids, cos=cos, sin=sin, mask=masks[kind.attention]), x)
    x = m.leave_layers(x)
    return parts.norm(m, x, "final norm")


def embed(m: Model) -> Tensor:
    """Token embeddings."""
    t = m.tape
    with t.part("embedding"):
        table = m.vector("embedding table", t.extent("V"), t.extent("h"))
        return ops.embedding(table, t.shape("b s"), "embedded tokens")


def causal_lm(m: Model) -> Tensor:
    """LlamaForCausalLM.forward with labels."""
    hidden = decoder(m)
    logits = head(m, hidden)
    return parts.causal_lm_loss(m, logits)


def head(m: Model, hidden: Tensor) -> Tensor:
    """The projection to the vocabulary, through the embedding table when tied."""
    t, a = m.tape, m.architecture
    with t.part("head"):
        name = "embedding table" if a.tied_embeddings else "head"
        weight = m.vector(name, t.extent("V"), t.extent("h"))
        bias = m.vector("head.bias", t.extent("V")) if a.head_bias else None
        return ops.product(hidden, weight, bias, "logits")
