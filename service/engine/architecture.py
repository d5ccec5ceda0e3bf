"""What a model is: the shape that parameters and activations follow from.

Sizes count elements, rates are probabilities. Nothing here knows bytes, GPUs or training code, except `code`, which
names the published modelling code whose habits (which copies it keeps) the Hugging Face stack follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

Position = Literal["rope", "learned", "alibi", "relative", "none"]
Norm = Literal["rmsnorm", "layernorm", "layernorm-no-bias", "layernorm-no-weight"]
#: pre: before each branch; post: after the residual sum (BERT); branch: on a branch's output, before the sum (OLMo-2);
#: sandwich: before and after each branch (Gemma-2)
NormPlacement = Literal["pre", "post", "branch", "sandwich"]
Activation = Literal["swiglu", "geglu", "reglu", "gelu", "relu", "relu2", "silu", "xielu"]
#: head: one weight of head_dim for queries, one for keys; full: over all heads; per-head: a weight of head_dim for
#: every head; unweighted: normalises and has no parameter (Llama 4)
QkNorm = Literal["none", "head", "full", "per-head", "unweighted"]
#: masked-lm: encoder that predicts masked tokens through the embedding matrix (BERT)
Head = Literal["lm", "masked-lm", "classification", "none"]
AttentionKind = Literal["full", "sliding"]
MlpKind = Literal["dense", "moe"]
Shards = Literal["", "tp", "tp_kv", "tp_qkv", "ep"]

GATED_ACTIVATIONS: frozenset[str] = frozenset({"swiglu", "geglu", "reglu"})


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
    #: the chosen experts' weights are divided by their sum
    normalised_weights: bool = True
    #: which layers are routed, where `first_dense_layers` and `every` cannot say it
    places: tuple[int, ...] | None = None
    #: a routed layer also has the dense MLP of `ffn_size`, beside the experts (Gemma 4)
    beside_dense: bool = False

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
class Encoder:
    """The other stack of an encoder-decoder (T5, BART); what is not said here is as in the decoder."""

    layers: int
    heads: int
    head_dim: int
    ffn_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTensor:
    """A parameter that only this family has, by name and shape of one copy.

    `layers` are the decoder layers that hold one each; empty means once, outside the layers.
    """

    name: str
    module: str
    shape: tuple[int, ...]
    layers: tuple[int, ...] = ()
    shards: Shards = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKind:
    """Layers that are alike; `positions` are their 0-based places in the decoder (or only) stack."""

    attention: AttentionKind
    mlp: MlpKind
    positions: tuple[int, ...]
    ffn_size: int | None = None
    kv_heads: int = 0
    head_dim: int = 0
    #: queries and keys are rotated here (false in Llama 4's and Cohere 2's position-free layers)
    rotary: bool = True
    #: keys serve as values, so there is no value projection (Gemma 4, full attention)
    keys_are_values: bool = False
    #: keys and values come from an earlier layer, so there is no projection for either (Gemma 3n)
    shares_kv: bool = False
    #: false where the norm before attention is left out (ModernBERT's first layer)
    attention_norm: bool = True

    @property
    def name(self) -> str:
        words: list[str] = [self.mlp]
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
    #: the activation as the modelling code names it ("gelu_new", "gelu_pytorch_tanh", …); "" is the usual one
    activation_function: str = ""
    #: None is `dropout`; `ffn_dropout` is the one inside the MLP, after the activation
    embedding_dropout: float | None = None
    ffn_dropout: float = 0.0
    norm_placement: NormPlacement = "pre"
    qk_norm_bias: bool = False
    #: one projection for queries, keys and values; one for gate and up (of the experts: `fused_experts`)
    fused_qkv: bool = False
    fused_gate_up: bool = False
    fused_experts: bool = False
    #: share of each head's elements that rotary positions turn (GPT-NeoX 0.25)
    rotary_fraction: float = 1.0
    nope_layers: tuple[int, ...] = ()
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] = ()
    attention_softcap: bool = False
    logit_softcap: bool = False
    attention_sinks: bool = False
    #: Gemma 4: what full-attention layers have when sliding ones have `head_dim` and `kv_heads`
    full_head_dim: int | None = None
    full_kv_heads: int | None = None
    full_keys_are_values: bool = False
    #: layers that take keys and values from an earlier one
    kv_shared_layers: tuple[int, ...] = ()
    #: width of the dense MLP in each layer, where it is not `ffn_size` everywhere
    ffn_sizes: tuple[int, ...] = ()
    first_attention_norm: bool = True
    encoder: Encoder | None = None
    head_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    #: width of the embedding table, where projections lead to and from `hidden_size` (OPT-350M)
    embedding_size: int | None = None
    #: rows of a learned position table beyond `max_positions` (OPT and BART 2)
    position_offset: int = 0
    #: buckets of a relative position bias that the first layer of a stack owns, one value a head (T5)
    relative_buckets: int = 0
    token_types: int = 0
    #: a dense layer with bias over the first token (BERT)
    pooler: bool = False
    extra_tensors: tuple[ExtraTensor, ...] = ()
    #: parameters that no transformer layer explains, kept as named totals: (("vision tower", 403_000_000), …)
    extra_parameters: tuple[tuple[str, int], ...] = ()

    @property
    def gated(self) -> bool:
        """Whether the MLP has a gate branch beside its up branch (three matrices)."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder beside the decoder; 0 for a model of one stack."""
        return self.encoder.layers if self.encoder else 0

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
    """The distinct kinds of decoder layer, in the order of their first layers; positions cover every layer once."""
    kind_of = _KindOf(architecture)
    places = dict[tuple[LayerKind, frozenset[int]], list[int]]()
    for position in range(architecture.layers):
        places.setdefault(kind_of(position), []).append(position)
    return tuple(replace(kind, positions=tuple(positions)) for (kind, _), positions in places.items())


class _KindOf:
    """Kind of the layer at a position, without positions, and which extra tensors it holds."""

    def __init__(self, architecture: Architecture) -> None:
        self._architecture = architecture
        self._sliding = frozenset(architecture.sliding_layers)
        self._no_positions = frozenset(architecture.nope_layers)
        self._shared = frozenset(architecture.kv_shared_layers)
        self._routed = frozenset(routed_layers(architecture))
        self._extras = [frozenset(extra.layers) for extra in architecture.extra_tensors]

    def __call__(self, position: int) -> tuple[LayerKind, frozenset[int]]:
        arch = self._architecture
        sliding = position in self._sliding
        kind = LayerKind(
            attention="sliding" if sliding else "full",
            mlp="moe" if position in self._routed else "dense",
            positions=(),
            ffn_size=arch.ffn_sizes[position] if arch.ffn_sizes else arch.ffn_size,
            kv_heads=arch.kv_heads if sliding else arch.full_kv_heads or arch.kv_heads,
            head_dim=arch.head_dim if sliding else arch.full_head_dim or arch.head_dim,
            rotary=arch.position == "rope" and position not in self._no_positions,
            keys_are_values=arch.full_keys_are_values and not sliding,
            shares_kv=position in self._shared,
            attention_norm=arch.first_attention_norm or position > 0,
        )
        return kind, frozenset(index for index, layers in enumerate(self._extras) if position in layers)


def routed_layers(architecture: Architecture) -> tuple[int, ...]:
    """Positions of the layers with routed experts."""
    moe = architecture.moe
    if moe is None:
        return ()
    if moe.places is not None:
        return moe.places
    return tuple(p for p in range(moe.first_dense_layers, architecture.layers) if is_moe_place(moe, p))


def is_moe_place(moe: MixtureOfExperts, position: int) -> bool:
    """Every n-th layer after the dense ones is routed, the n-th itself first (Llama 4 Maverick: 1, 3, 5 …)."""
    return (position - moe.first_dense_layers + 1) % moe.every == 0
