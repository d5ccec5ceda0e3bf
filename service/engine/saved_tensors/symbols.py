"""The symbols of the programs with their sizes on one rank."""

from __future__ import annotations

from service.engine.architecture import LayerKind
from service.engine.elementwise import Int, ceil_div, maximum
from service.engine.ledger import Dim
from service.engine.saved_tensors.scope import Scope


def rotary_width(fraction: float, head: int) -> int:
    """Elements of a head that rotary positions turn."""
    return int(head * fraction)


def _fused_slice(tokens: Int, vocab: Int, hidden: int) -> Int:
    """Tokens whose logits Liger's fused loss holds at once: about as many entries as the hidden states have."""
    return ceil_div(tokens, ceil_div(vocab, hidden))


def dimensions(scope: Scope, kind: LayerKind, *, encoder: bool = False) -> dict[str, Dim]:
    """Every symbol as a dimension of one rank, for layers of this kind (or of the encoder beside the decoder)."""
    a, run, layout = scope.architecture, scope.run, scope.layout
    tp = ("tp",)
    local_kv = maximum(ceil_div(kind.kv_heads or a.kv_heads, layout.tp), 1)
    group = maximum(ceil_div(a.heads, layout.tp) // local_kv, 1)
    tokens = scope.queries.size
    head = kind.head_dim or a.head_dim
    found: dict[str, tuple[Int, tuple[str, ...]]] = {
        "b": (run.micro_batch, ()),
        "s": (tokens, ("cp",)),
        "t": (run.sequence_length, ()),
        "s1": (tokens + 1, ("cp",)),
        "s+1": (tokens + 1, ("cp",)),
        "s32": (ceil_div(tokens, 32) * 32, ("cp",)),
        "h": (a.hidden_size, ()),
        "kv": (local_kv, tp),
        "g": (group, ()),
        "d": (head, ()),
        "d2": (head // 2, ()),
        "r": (rotary_width(a.rotary_fraction, head), ()),
        "r2": (rotary_width(a.rotary_fraction, head) // 2, ()),
        "p": (head - rotary_width(a.rotary_fraction, head), ()),
        "qkv": ((group + 2) * local_kv * head, tp),
        "g+2": (group + 2, ()),
        "f": (ceil_div(kind.ffn_size or 0, layout.tp), tp),
        "P": (a.max_positions + a.position_offset, ()),
        "buckets": (a.relative_buckets, ()),
        "T": (a.token_types, ()),
        "we": (a.embedding_size or a.hidden_size, ()),
        "V": (scope.vocab.size, tp),
        "ra": (scope.recipe.lora_rank, ()),
        "s8": (ceil_div(tokens, 8), ("cp",)),
        "lc": (_fused_slice(run.micro_batch * tokens, scope.vocab.size, a.hidden_size), ("cp",)),
    }
    if encoder and a.encoder is not None:
        found |= {
            "kv": (ceil_div(a.encoder.heads, layout.tp), tp),
            "d": (a.encoder.head_dim, ()),
            "f": (ceil_div(a.encoder.ffn_size, layout.tp), tp),
        }
    if a.moe is not None:
        found |= {
            "E": (ceil_div(a.moe.experts, layout.ep), ("ep",)),
            "k": (a.moe.top_k, ()),
            "m": (ceil_div(a.moe.ffn_size, layout.etp), ("etp",)),
            "ms": (ceil_div(a.moe.shared_width, layout.tp), tp),
        }
    if a.mla is not None:
        found |= {
            "np": (a.mla.qk_nope_head_dim, ()),
            "rp": (a.mla.qk_rope_head_dim, ()),
            "rp2": (a.mla.qk_rope_head_dim // 2, ()),
            "qk": (a.mla.qk_head_dim, ()),
            "vd": (a.mla.v_head_dim, ()),
            "kvb": (a.mla.qk_nope_head_dim + a.mla.v_head_dim, ()),
            "cr": (a.mla.kv_lora_rank, ()),
            "crp": (a.mla.kv_lora_rank + a.mla.qk_rope_head_dim, ()),
            "qr": (a.mla.q_lora_rank or 0, ()),
        }
    return {symbol: Dim(symbol, size, sharded) for symbol, (size, sharded) in found.items()}
