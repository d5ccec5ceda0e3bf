"""DeepSeek-V2 and V3: latent attention, shared experts (modeling_deepseek_v2.py, modeling_deepseek_v3.py)."""

from __future__ import annotations

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import decoder, losses, moe, parts
from service.engine.saved_tensors.code.model import Around, Model


def attention(m: Model, x: Tensor, at: Around) -> Tensor:
    """Queries through a latent of their own or directly; keys and values from one shared latent."""
    t, a = m.tape, m.architecture
    assert a.mla is not None
    nope, rope, wide = t.extent("np"), t.extent("rp"), t.extent("qk")
    with t.part("attention"):
        if a.mla.q_lora_rank is None:
            query = m.linear(x, "q_proj", (*m.heads, *wide), label="query")
        else:
            low = m.linear(x, "q_a_proj", t.extent("qr"), bias=a.attention_bias, label="query latent")
            low = parts.rms_norm(m, low, "query latent norm")
            query = m.linear(low, "q_b_proj", (*m.heads, *wide), label="query")
            del low
        query = parts.to_heads(query, m.heads, wide)
        query_pass, query_turn = ops.split(query, (nope, rope))
        low = m.linear(x, "kv_a_proj", t.extent("crp"), bias=a.attention_bias, label="key-value latent")
        latent, key_turn = ops.split(low, (t.extent("cr"), rope))
        latent = parts.rms_norm(m, latent, "key-value latent norm")
        key_turn = ops.reshape(key_turn, (key_turn.shape[0], (), *key_turn.shape[1:]))
        assert at.cos is not None
        query_turn, key_turn = (
            _turn_pairs(part, at, f"rotated {name}") if a.code != "deepseek_v2" else _turn_complex(part, at, name)
            for name, part in (("query", query_turn), ("key", key_turn))
        )
        query = ops.cat((query_pass, query_turn), (*query.shape[:3], wide), "query")
        key, value = _expand(m, latent, key_turn)
        out = parts.from_heads(parts.attention(m, query, key, value, at.mask, dropout=a.attention_dropout))
        return m.linear(out, "o_proj", x.shape[-1], bias=a.attention_out_bias, label="attention branch")


def _expand(m: Model, latent: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
    """All heads of keys and values from the latent; the rotated part is one head that all share."""
    t = m.tape
    with t.part("attention", region="mla_up_proj"):
        both = m.linear(latent, "kv_b_proj", (*m.heads, *t.extent("kvb")), label="keys and values of all heads")
        both = parts.to_heads(both, m.heads, t.extent("kvb"))
        fixed, value = ops.split(both, (t.extent("np"), t.extent("vd")))
        shape = (*both.shape[:3], t.extent("qk"))
        turned = ops.expand(turned, (turned.shape[0], m.heads, *turned.shape[2:]))
        return ops.written_into((fixed, turned), shape, "key"), value


def _turn_pairs(x: Tensor, at: Around, label: str) -> Tensor:
    """DeepSeek-V3: even and odd elements are a pair; four products, two sums."""
    assert at.cos is not None and at.sin is not None
    half = tuple(f"{symbol}2" for symbol in x.shape[-1])
    even, odd = ops.slice_of(x, half), ops.slice_of(x, half)
    cos, sin = _first_half(at.cos, half), _first_half(at.sin, half)
    left = ops.sub(ops.mul(even, cos), ops.mul(odd, sin), "turned evens")
    right = ops.add(ops.mul(odd, cos), ops.mul(even, sin), "turned odds")
    return ops.cat((left, right), x.shape, label)


def _first_half(table: Tensor, half: tuple[str, ...]) -> Tensor:
    return Tensor(table.tape, table.storage, (*table.shape[:-1], half), table.strides, table.dtype)


def _turn_complex(x: Tensor, at: Around, name: str) -> Tensor:
    """DeepSeek-V2: pairs as complex numbers in fp32, one product."""
    assert at.cos is not None
    half = tuple(f"{symbol}2" for symbol in x.shape[-1])
    wide = ops.to(x, "fp32", f"{name} in fp32")
    as_complex = ops.viewed(wide, (*x.shape[:-1], half), "complex64")
    turned = ops.mul(as_complex, at.cos, f"turned {name}")
    del wide, as_complex
    return ops.to(ops.viewed(turned, x.shape, "fp32"), x.dtype, f"rotated {name}")


def positions(m: Model) -> tuple[Tensor | None, Tensor | None]:
    """V3: cos and sin; V2: one table of complex numbers."""
    if m.architecture.code != "deepseek_v2":
        return parts.positions(m, "rp")
    t = m.tape
    angles = t.new(t.shape("1 s rp2"), "fp32", "angles")
    ones = t.new(t.shape("1 s rp2"), "fp32", "ones")
    turns = t.new(t.shape("1 s rp2"), "complex64", "turns")
    table = t.new(t.shape("1 1 s rp2"), "complex64", "turn of each position")
    del angles, ones, turns
    return table, None


def layer(m: Model, x: Tensor, *, at: Around) -> Tensor:
    """Pre-norm layer, dense or routed."""
    hidden = attention(m, parts.norm(m, x, "attention norm"), at)
    hidden = ops.add(x, hidden, "residual stream")
    residual = hidden
    hidden = parts.norm(m, hidden, "mlp norm")
    hidden = routed(m, hidden) if m.kind.mlp == "moe" else parts.gated_mlp(m, hidden)
    return ops.add(residual, hidden, "residual stream")


def routed(m: Model, x: Tensor) -> Tensor:
    """Router in fp32, routed experts, shared experts."""
    t = m.tape
    with t.part("moe", region="moe"):
        flat = ops.reshape(x, (t.extent("b", "s"), x.shape[-1]))
        weights, places = (
            moe.sigmoid_router(m, flat) if m.architecture.code != "deepseek_v2" else _softmax_router(m, flat)
        )
        out = ops.reshape(moe.experts(m, flat, weights, places), x.shape)
        return ops.add(out, moe.shared_experts(m, x), "routed and shared experts")


def _softmax_router(m: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """DeepSeek-V2: softmax, the best k of it (of the best groups in the larger model)."""
    t = m.tape
    with t.part("router", region="moe"):
        chances = ops.softmax(moe.wide_logits(m, x), "router probabilities", dtype="fp32")
        values, places = ops.top_k(chances, t.extent("k"), "chosen router probabilities")
        return ops.scale(values, "scaled router weights"), places


def causal_lm(m: Model) -> Tensor:
    """The language model with its loss."""
    hidden = decoder.decoder(m, layer, positions=positions)
    return losses.loss(m, hidden)
