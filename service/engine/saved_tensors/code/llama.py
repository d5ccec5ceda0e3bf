"""Llama and what is built like it: Mistral, Qwen2, Qwen3 (modeling_llama.py and its descendants)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, moe, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Separate projections, optional q/k norms over each head, rotary positions."""
    t, a = m.tape, m.architecture
    d, bias = t.extent("d"), a.attention_bias
    with t.part("attention"):
        query = m.linear(x, "q_proj", (*m.heads, *d), bias=bias, label="query")
        query = heads_of(m, query, m.heads, "q_norm")
        key = heads_of(m, m.linear(x, "k_proj", (*m.kv_heads, *d), bias=bias, label="key"), m.kv_heads, "k_norm")
        value = parts.to_heads(m.linear(x, "v_proj", (*m.kv_heads, *d), bias=bias, label="value"), m.kv_heads, d)
        if m.kind.rotary and at.cos is not None and at.sin is not None:
            query = parts.rotate(query, at.cos, at.sin, "rotated query")
            key = parts.rotate(key, at.cos, at.sin, "rotated key")
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout)
        out = parts.from_heads(out)
        return m.linear(out, "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch")


def heads_of(m: Model, x: Tensor, heads: tuple[str, ...], norm: str) -> Tensor:
    """Split into heads, normalise each where the model does, and bring heads before tokens."""
    d = m.tape.extent("d")
    split = ops.reshape(x, (*x.shape[:2], heads, d))
    if m.architecture.qk_norm == "head":
        split = parts.rms_norm(m, split, norm)
    return ops.transpose(split, 1, 2)


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm decoder layer."""
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = parts.norm(m, hidden, "mlp norm")
    hidden = feed_forward(m, hidden)
    return ops.add(residual, hidden, "residual stream")


def feed_forward(m: Model, x: Tensor) -> Tensor:
    """Dense or routed, as the kind of layer says."""
    if m.kind.mlp == "moe":
        return moe.block(m, x)
    return parts.gated_mlp(m, x) if m.architecture.gated else parts.plain_mlp(m, x)


def causal_lm(m: Model) -> Tensor:
    """LlamaForCausalLM.forward with labels."""
    return decoder.causal_lm(m, layer)
