"""OLMo-2 and OLMo-3: norms on the branches' outputs and over all heads of q and k (modeling_olmo2.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """q and k are normalised over all their heads before they are split."""
    t, d = m.tape, m.tape.extent("d")
    assert at.cos is not None and at.sin is not None
    with t.part("attention"):
        query = parts.norm(m, m.linear(x, "q_proj", (*m.heads, *d), label="query"), "q_norm")
        key = parts.norm(m, m.linear(x, "k_proj", (*m.kv_heads, *d), label="key"), "k_norm")
        value = m.linear(x, "v_proj", (*m.kv_heads, *d), label="value")
        query, key = parts.to_heads(query, m.heads, d), parts.to_heads(key, m.kv_heads, d)
        value = parts.to_heads(value, m.kv_heads, d)
        dtype = query.dtype
        query = ops.to(parts.rotate(query, at.cos, at.sin, "rotated query in fp32"), dtype, "rotated query")
        key = ops.to(parts.rotate(key, at.cos, at.sin, "rotated key in fp32"), dtype, "rotated key")
        out = parts.attention(m, query, key, value, at.mask, dropout=m.architecture.attention_dropout)
        return m.linear(parts.from_heads(out), "o_proj", x.shape[-1], label="attention branch")


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Each branch's output is normalised before it joins the stream."""
    hidden = attention(m, x, at)
    hidden = parts.norm(m, hidden, "attention output norm")
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = parts.gated_mlp(m, hidden)
    hidden = parts.norm(m, hidden, "mlp output norm")
    return ops.add(residual, hidden, "residual stream")


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss; cos and sin stay in fp32."""
    hidden = decoder.decoder(m, layer, positions=lambda model: parts.positions(model, dtype="fp32"))
    return parts.causal_lm_loss(m, decoder.head(m, hidden))
