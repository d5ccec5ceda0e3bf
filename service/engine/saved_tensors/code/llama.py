"""Llama and the many families that follow its code: what differs between them is said by the architecture.

Norms before, after or around the branches, or one norm for two parallel branches; q/k norms over each head or over
all; partly rotated heads; gated or plain MLP; joined projections; dropout; routed layers.
"""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.saved_tensors.code import decoder, losses, moe, parts, rotary
from service.engine.saved_tensors.code.model import Around, Model

#: families that normalise q and k after heads were brought before tokens
NORM_AFTER_TURN = frozenset({"gemma3_text", "gemma3", "stablelm", "phi", "exaone4"})
#: families that scale each branch before it joins the stream
SCALED_BRANCHES = frozenset({"granite", "granitemoe", "cohere_asr", "minicpm3"})
#: families that scale the logits
SCALED_LOGITS = frozenset({"cohere", "cohere2", "granite", "granitemoe"})
#: families that scale the embedded tokens
SCALED_EMBEDDING = frozenset({"granite", "granitemoe"})


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Projections, q/k norms, rotary positions, attention, output projection."""
    t, a = m.tape, m.architecture
    with t.part("attention"):
        query, key, value = projections(m, x)
        if m.kind.rotary and at.cos is not None:
            query, key = rotary.apply(m, query, key, at)
        out = parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout, softcap=a.attention_softcap)
        out = parts.from_heads(out)
        return m.linear(out, "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch")


def projections(m: Model, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(b, heads, s, d) queries, keys and values."""
    t, a, d = m.tape, m.architecture, m.tape.extent("d")
    if a.fused_qkv:
        fused = m.linear(x, "qkv_proj", t.extent("qkv"), bias=a.attention_bias, label="query, key and value")
        widths: list[Extent] = [(*heads, *d) for heads in (m.heads, m.kv_heads, m.kv_heads)]
        query, key, value = ops.split(fused, widths)
    else:
        query = m.linear(x, "q_proj", (*m.heads, *d), bias=a.attention_bias, label="query")
        key = m.linear(x, "k_proj", (*m.kv_heads, *d), bias=a.attention_bias, label="key")
        value = m.linear(x, "v_proj", (*m.kv_heads, *d), bias=a.attention_bias, label="value")
    return (
        heads_of(m, query, m.heads, "q_norm"),
        heads_of(m, key, m.kv_heads, "k_norm"),
        parts.to_heads(value, m.kv_heads, d),
    )


def heads_of(m: Model, x: Tensor, heads: Extent, norm: str) -> Tensor:
    """Split into heads, with the norm where the family has it."""
    a, d = m.architecture, m.tape.extent("d")
    if a.qk_norm == "full":
        x = parts.norm(m, x, norm)
    split = ops.reshape(x, (*x.shape[:2], heads, d))
    late = a.code in NORM_AFTER_TURN
    if a.qk_norm in ("head", "per-head") and not late:
        split = head_norm(m, split, norm)
    turned = ops.transpose(split, 1, 2)
    return head_norm(m, turned, norm) if a.qk_norm in ("head", "per-head") and late else turned


def head_norm(m: Model, x: Tensor, name: str) -> Tensor:
    """q/k norm of one head: RMS, or a layer norm where the model's norms are layer norms with weights."""
    if m.architecture.norm == "layernorm" and m.architecture.code not in parts.NORMS:
        return parts.layer_norm(m, x, name, bias=m.architecture.qk_norm_bias)
    return parts.norm(m, x, name) if m.architecture.norm == "rmsnorm" else parts.centred_norm(m, x, name)


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """One decoder layer."""
    if m.architecture.parallel_block:
        return parallel_layer(m, x, at)
    a = m.architecture
    before, after = a.norm_placement in ("pre", "sandwich"), a.norm_placement in ("branch", "sandwich")
    hidden = attention(m, parts.norm(m, x, "attention norm") if before and m.kind.attention_norm else x, at)
    hidden = branch(m, hidden, "attention", normalised=after)
    hidden = ops.add(x, hidden, "residual stream")
    if a.norm_placement == "post":
        hidden = parts.norm(m, hidden, "attention norm")
    residual = hidden
    hidden = feed_forward(m, parts.norm(m, hidden, "mlp norm") if before else hidden)
    hidden = branch(m, hidden, "mlp", normalised=after)
    hidden = ops.add(residual, hidden, "residual stream")
    return parts.norm(m, hidden, "mlp norm") if a.norm_placement == "post" else hidden


def branch(m: Model, x: Tensor, name: str, *, normalised: bool) -> Tensor:
    """What happens to a branch's output before it joins the stream."""
    if normalised:
        x = parts.norm(m, x, f"{name} output norm")
    if m.architecture.code in SCALED_BRANCHES:
        x = ops.scale(x, f"scaled {name} branch")
    return ops.dropout(x, m.architecture.dropout, f"{name} branch dropout")


def parallel_layer(m: Model, x: Tensor, at: Around) -> Tensor:
    """Attention and MLP read the same input, through one norm or through one each."""
    rate = m.architecture.dropout
    normal = parts.norm(m, x, "attention norm")
    left = ops.dropout(attention(m, normal, at), rate, "attention branch dropout")
    if m.architecture.norms_per_layer >= 2:
        normal = parts.norm(m, x, "mlp norm")
    right = ops.dropout(feed_forward(m, normal), rate, "mlp branch dropout")
    return ops.add(ops.add(x, left, "stream and attention"), right, "residual stream")


def feed_forward(m: Model, x: Tensor) -> Tensor:
    """Dense or routed, as the kind of layer says."""
    a = m.architecture
    if m.kind.mlp == "moe":
        return moe.block(m, x)
    if a.gated and a.fused_gate_up:
        return parts.joined_mlp(m, x)
    return parts.gated_mlp(m, x) if a.gated else parts.plain_mlp(m, x)


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss."""
    a = m.architecture
    rate = a.dropout if a.embedding_dropout is None else a.embedding_dropout
    hidden = decoder.decoder(m, layer, positions=rotary.positions, scaled=a.code in SCALED_EMBEDDING, dropout=rate)
    return losses.loss(m, hidden, then=_finished)


def _finished(m: Model, logits: Tensor) -> Tensor:
    """Logits scaled and capped where the family does so."""
    a = m.architecture
    if a.code in SCALED_LOGITS:
        logits = ops.scale(logits, "scaled logits")
    if a.logit_softcap:
        logits = ops.scale(logits, "logits over the cap")
        logits = ops.scale(ops.tanh(logits, "capped logits (tanh)"), "capped logits")
    return logits
