"""The `architecture` object of a request → Architecture: usual values for what is left out, every problem at once."""

from __future__ import annotations

from typing import Any, get_args

from service.catalog.bounds import (
    MOST_EXPERTS,
    MOST_HEADS,
    MOST_HIDDEN,
    MOST_LAYERS,
    MOST_PARAMETERS,
    MOST_POSITIONS,
    MOST_VOCAB,
)
from service.catalog.members import Members
from service.engine.architecture import (
    GATED_ACTIVATIONS,
    Activation,
    Architecture,
    LatentAttention,
    MixtureOfExperts,
    Norm,
)
from service.engine.errors import FieldError, InvalidInput
from service.engine.parameters import count

KEYS = (
    "layers",
    "hidden_size",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn_size",
    "vocab_size",
    "max_positions",
    "tied_embeddings",
    "position",
    "norm",
    "activation",
    "attention_bias",
    "mlp_bias",
    "attention_out_bias",
    "qk_norm",
    "parallel_block",
    "dropout",
    "attention_dropout",
    "moe",
    "mla",
    "mtp_layers",
    "norms_per_layer",
    "head",
)
MOE_KEYS = (
    "experts",
    "top_k",
    "moe_ffn_size",
    "shared_experts",
    "shared_ffn_size",
    "first_dense_layers",
    "moe_every",
)
MLA_KEYS = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
POSITIONS = ("rope", "learned", "alibi", "none")
USUAL_POSITIONS = 8192


def read_architecture(value: Any, pointer: str) -> tuple[Architecture, tuple[tuple[str, str], ...]]:
    """The architecture and warnings about sizes that had to be assumed.

    Raises InvalidInput with a pointer to every unknown, missing, contradictory or out-of-bounds key.
    """
    said = Members(value, pointer, KEYS)
    layers, hidden = said.size("layers", MOST_LAYERS), said.size("hidden_size", MOST_HIDDEN)
    heads, vocab = said.size("heads", MOST_HEADS), said.size("vocab_size", MOST_VOCAB)
    mla, moe = _latent(said), _mixture(said, layers)
    activation: Activation = said.choice("activation", get_args(Activation), "swiglu")
    mlp_bias, dropout = said.flag("mlp_bias"), said.rate("dropout", 0.0)
    norms = said.size("norms_per_layer", 4, usual=2)
    if norms not in (1, 2, 4):
        said.problem("norms_per_layer", "norms_per_layer is not known", "1, 2 or 4")
    ffn = _ffn_size(said, hidden, moe, layers, gated=activation in GATED_ACTIVATIONS)
    head_dim = _head_dim(said, hidden, heads, mla)
    kv_heads = said.size("kv_heads", MOST_HEADS, usual=heads)
    if heads % kv_heads and mla is None:
        said.problem("kv_heads", f"{heads} heads cannot share {kv_heads} key-value heads", f"a divisor of {heads}")
    fields: dict[str, Any] = {
        "layers": layers,
        "hidden_size": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "ffn_size": ffn,
        "vocab_size": vocab,
        "max_positions": said.size("max_positions", MOST_POSITIONS, usual=USUAL_POSITIONS),
        "tied_embeddings": said.flag("tied_embeddings"),
        "position": said.choice("position", POSITIONS, "rope"),
        "norm": said.choice("norm", get_args(Norm), "rmsnorm"),
        "activation": activation,
        "attention_bias": said.flag("attention_bias"),
        "attention_out_bias": said.flag("attention_out_bias", mlp_bias),
        "mlp_bias": mlp_bias,
        "qk_norm": _qk_norm(said),
        "parallel_block": said.flag("parallel_block"),
        "dropout": dropout,
        "attention_dropout": said.rate("attention_dropout", dropout),
        "moe": moe,
        "mla": mla,
        "mtp_layers": said.size("mtp_layers", MOST_LAYERS, least=0, usual=0),
        "norms_per_layer": norms,
        "norm_placement": "sandwich" if norms == 4 else "pre",
        "head": said.choice("head", ("lm", "classification"), "lm"),
    }
    said.raise_errors()
    architecture = Architecture(**fields)
    total = count(architecture)
    if total > MOST_PARAMETERS:
        detail = f"these sizes make {total:.3e} parameters"
        raise InvalidInput([FieldError(pointer, detail, None, f"at most {MOST_PARAMETERS:.0e} parameters")])
    return architecture, _assumed(said)


def _assumed(said: Members) -> tuple[tuple[str, str], ...]:
    if not said.assumed:
        return ()
    taken = ", ".join(f"{key} {value}" for key, value in said.assumed.items())
    return (("architecture_assumed", f"not in the architecture, so the usual value was taken: {taken}"),)


def _head_dim(said: Members, hidden: int, heads: int, mla: LatentAttention | None) -> int:
    dim = said.optional_size("head_dim", MOST_HEADS)
    if mla is not None:
        if dim is not None and dim != mla.qk_head_dim and not said.errors:
            allowed = f"{mla.qk_head_dim} (qk_nope_head_dim + qk_rope_head_dim), or nothing"
            said.problem("head_dim", f"head_dim {dim} contradicts mla", allowed)
        return mla.qk_head_dim
    if dim is None and hidden % heads and not said.errors:
        detail = f"hidden_size {hidden} is not a multiple of the {heads} heads"
        said.problem("hidden_size", detail, f"a multiple of {heads}, or a head_dim beside it")
    return dim or max(hidden // heads, 1)


def _ffn_size(said: Members, hidden: int, moe: MixtureOfExperts | None, layers: int, *, gated: bool) -> int | None:
    """Left out: 4 · hidden_size, or 8/3 of it (up to a multiple of 256) with a gate; null: every layer is MoE."""
    all_routed = moe is not None and moe.first_dense_layers == 0 and moe.every == 1
    if said.is_null("ffn_size") or (all_routed and not said.has("ffn_size")):
        if not all_routed:
            said.problem("ffn_size", "dense layers need an ffn_size", f"a whole number from 1 to {4 * MOST_HIDDEN}")
        return None
    usual = -(-8 * hidden // (3 * 256)) * 256 if gated else 4 * hidden
    return said.size("ffn_size", 4 * MOST_HIDDEN, usual=usual, say=True)


def _qk_norm(said: Members) -> str:
    value = said.get("qk_norm")
    if value is None or value is False:
        return "none"
    if value is True:
        return "head"
    if value == "full":
        return "full"
    said.problem("qk_norm", "qk_norm is not known", "true, false or full")
    return "none"


def _mixture(said: Members, layers: int) -> MixtureOfExperts | None:
    inner = said.inner("moe", MOE_KEYS)
    if inner is None:
        return None
    experts, top_k = inner.size("experts", MOST_EXPERTS), inner.size("top_k", MOST_EXPERTS)
    width = inner.size("moe_ffn_size", MOST_HIDDEN)
    if top_k > experts and not inner.errors:
        inner.problem("top_k", f"a token cannot go to {top_k} of {experts} experts", f"1 to {experts}")
    first = inner.size("first_dense_layers", MOST_LAYERS, least=0, usual=0)
    if first > layers and not inner.errors:
        inner.problem("first_dense_layers", f"there are only {layers} layers", f"0 to {layers}")
    shared = inner.size("shared_experts", MOST_EXPERTS, least=0, usual=0)
    shared_width = inner.size("shared_ffn_size", MOST_HIDDEN, least=0, usual=width if shared else 0)
    return MixtureOfExperts(
        experts=experts,
        top_k=min(top_k, experts),
        ffn_size=width,
        shared_experts=shared,
        shared_ffn_size=shared_width if shared else 0,
        first_dense_layers=first,
        every=inner.size("moe_every", MOST_LAYERS, usual=1),
        expert_bias=said.get("mlp_bias") is True,
    )


def _latent(said: Members) -> LatentAttention | None:
    inner = said.inner("mla", MLA_KEYS)
    if inner is None:
        return None
    return LatentAttention(
        q_lora_rank=inner.optional_size("q_lora_rank", MOST_HIDDEN),
        kv_lora_rank=inner.size("kv_lora_rank", MOST_HIDDEN),
        qk_nope_head_dim=inner.size("qk_nope_head_dim", MOST_HEADS),
        qk_rope_head_dim=inner.size("qk_rope_head_dim", MOST_HEADS),
        v_head_dim=inner.size("v_head_dim", MOST_HEADS),
    )
