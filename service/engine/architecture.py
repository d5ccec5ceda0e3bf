"""What a model is: the shape that parameters and activations follow from.

Sizes count elements, rates are probabilities. Nothing here knows bytes, GPUs or training code, except `code`, which
names the published modelling code whose habits (which copies it keeps) the Hugging Face stack follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Position = Literal["rope", "learned", "alibi", "relative", "none"]
Norm = Literal["rmsnorm", "layernorm", "layernorm-no-bias", "layernorm-no-weight"]
Activation = Literal["swiglu", "geglu", "gelu", "relu", "relu2"]
QkNorm = Literal["none", "head", "full"]
Head = Literal["lm", "classification", "none"]
AttentionKind = Literal["full", "sliding"]
MlpKind = Literal["dense", "moe"]

GATED_ACTIVATIONS: frozenset[str] = frozenset({"swiglu", "geglu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """Routed experts: `top_k` of `experts` see each token; `shared_experts` of width `shared_ffn_size` see all."""

    experts: int
    top_k: int
    ffn_size: int
    shared_experts: int = 0
    shared_ffn_size: int = 0
    first_dense_layers: int = 0
    every: int = 1
    router_bias: bool = False
    shared_gate: bool = False
    expert_bias: bool = False

    @property
    def shared_width(self) -> int:
        """Summed width of the shared experts."""
        return self.shared_experts * self.shared_ffn_size


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1)."""

    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    q_lora_rank: int | None = None

    @property
    def qk_head_dim(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """Layers that are alike; `positions` are their 0-based places in the decoder (or only) stack."""

    attention: AttentionKind
    mlp: MlpKind
    positions: tuple[int, ...]
    ffn_size: int | None = None

    @property
    def name(self) -> str:
        words = [self.mlp if self.mlp == "moe" else "dense"]
        if self.attention == "sliding":
            words.append("sliding-window")
        return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A transformer. With `mla`, `head_dim` is nope + rope and `kv_heads` is not used."""

    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_size: int | None
    vocab_size: int
    max_positions: int
    tied_embeddings: bool = False
    position: Position = "rope"
    norm: Norm = "rmsnorm"
    activation: Activation = "swiglu"
    attention_bias: bool = False
    attention_out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: QkNorm = "none"
    parallel_block: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0
    moe: MixtureOfExperts | None = None
    mla: LatentAttention | None = None
    mtp_layers: int = 0
    norms_per_layer: int = 2
    head: Head = "lm"
    # Said by the catalogue and by hf_config, never by the `architecture` object of a request.
    code: str = "generic"
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()
    attention_softcap: bool = False
    logit_softcap: bool = False
    attention_sinks: bool = False
    encoder_layers: int = 0
    head_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    token_types: int = 0
    #: parameters that no transformer layer explains, kept as named totals: (("vision tower", 403_000_000), …)
    extra_parameters: tuple[tuple[str, int], ...] = ()

    @property
    def gated(self) -> bool:
        """Whether the MLP has a gate branch beside its up branch (three matrices)."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def query_width(self) -> int:
        """Elements of all query heads of one token."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Elements of all key heads of one token (values alike, except with `mla`)."""
        return self.kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        """Elements of the attention output of one token, before its projection."""
        return self.heads * (self.mla.v_head_dim if self.mla else self.head_dim)


@lru_cache(maxsize=4096)
def layer_kinds(architecture: Architecture) -> tuple[LayerKind, ...]:
    """The distinct kinds of decoder layer, in the order in which they first appear; positions cover every layer once."""
    moe, places = architecture.moe, dict[tuple[AttentionKind, MlpKind], list[int]]()
    sliding = frozenset(architecture.sliding_layers)
    for position in range(architecture.layers):
        routed = moe is not None and position >= moe.first_dense_layers and is_moe_place(moe, position)
        attention: AttentionKind = "sliding" if position in sliding else "full"
        places.setdefault((attention, "moe" if routed else "dense"), []).append(position)
    return tuple(
        LayerKind(attention=attention, mlp=mlp, positions=tuple(positions), ffn_size=architecture.ffn_size)
        for (attention, mlp), positions in places.items()
    )


def is_moe_place(moe: MixtureOfExperts, position: int) -> bool:
    """Every n-th layer after the dense ones is routed, the n-th itself first (Llama 4 Maverick: 1, 3, 5 …)."""
    return (position - moe.first_dense_layers + 1) % moe.every == 0
