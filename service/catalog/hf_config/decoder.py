"""What nearly every decoder's config says in the same way, and the words for activations and layer types."""

from __future__ import annotations

from typing import Any

from service.catalog.bounds import MOST_EXPERTS, MOST_HEADS, MOST_LAYERS, MOST_POSITIONS, MOST_VOCAB
from service.catalog.hf_config.reader import ConfigReader
from service.engine.architecture import Activation, Architecture, MixtureOfExperts
from service.engine.errors import nearest

GATED: dict[str, Activation] = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "geglu",
    "gelu_new": "geglu",
    "gelu_fast": "geglu",
    "gelu_10": "geglu",
    "gelu_python": "geglu",
    "gelu_accurate": "geglu",
    "gelu_pytorch_tanh": "geglu",
    "gelu_python_tanh": "geglu",
    "quick_gelu": "geglu",
    "relu": "reglu",
}
PLAIN: dict[str, Activation] = {
    **{name: "gelu" for name, gated in GATED.items() if gated == "geglu"},
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu2",
    "xielu": "xielu",
}
SLIDING_WORDS = frozenset({"sliding_attention", "chunked_attention", "local"})


def decoder(config: ConfigReader, *, gated: bool = True, own_head_dim: bool = True, **said: Any) -> Architecture:
    """The architecture of a decoder whose sizes have the usual names; `said` is what the family adds or knows better.

    `own_head_dim` is False where the modelling code divides hidden_size by heads whatever the config says.
    """
    heads = said.pop("heads", None) or config.size("num_attention_heads", most=MOST_HEADS)
    hidden = said.pop("hidden_size", None) or config.size("hidden_size")
    sizes: dict[str, Any] = {
        "layers": said.pop("layers", None) or config.size("num_hidden_layers", most=MOST_LAYERS),
        "hidden_size": hidden,
        "heads": heads,
        "kv_heads": said.pop("kv_heads", None) or key_value_heads(config, heads),
        "head_dim": said.pop("head_dim", None) or head_dim(config, hidden, heads, own=own_head_dim),
        "vocab_size": config.size("vocab_size", most=MOST_VOCAB),
        "tied_embeddings": config.flag("tie_word_embeddings"),
        "attention_dropout": config.rate("attention_dropout"),
        "code": config.model_type,
    }
    if "ffn_size" not in said:
        sizes["ffn_size"] = config.size("intermediate_size")
    if "max_positions" not in said:
        sizes["max_positions"] = config.size("max_position_embeddings", most=MOST_POSITIONS)
    if "activation" not in said:
        sizes["activation"], sizes["activation_function"] = activation(config, gated=gated)
    return Architecture(**{**sizes, **said})


def key_value_heads(config: ConfigReader, heads: int) -> int:
    kv_heads = config.optional_size("num_key_value_heads", most=MOST_HEADS) or heads
    if heads % kv_heads:
        config.problem(
            "num_key_value_heads",
            f"{heads} attention heads cannot share {kv_heads} key-value heads evenly",
            given=kv_heads,
            allowed=f"a divisor of {heads}",
        )
    return kv_heads


def head_dim(config: ConfigReader, hidden: int, heads: int, *, own: bool = True) -> int:
    dim = config.optional_size("head_dim") if own else None
    if dim is None and hidden % heads and not config.errors:
        config.problem(
            "hidden_size",
            f"hidden_size {hidden} is not a multiple of the {heads} attention heads",
            allowed=f"a multiple of {heads}" + (", or a head_dim beside it" if own else ""),
        )
    return dim or max(hidden // heads, 1)


def activation(config: ConfigReader, *, gated: bool, key: str = "hidden_act") -> tuple[Activation, str]:
    """The engine's word and the config's own."""
    known = GATED if gated else PLAIN
    said = config.word(key) or ("silu" if gated else "gelu")
    if said not in known:
        config.problem(
            key,
            f"activation {said[:40]} is not known here",
            given=said,
            allowed=", ".join(known),
            near=nearest(said, known),
        )
        return "swiglu", said
    return known[said], said


def experts(config: ConfigReader, *, ffn_key: str = "moe_intermediate_size", **said: Any) -> MixtureOfExperts:
    """Routed experts whose number, top-k and width have the usual names."""
    number = said.pop("experts", None) or config.size("num_experts", most=MOST_EXPERTS)
    top_k = said.pop("top_k", None) or config.size("num_experts_per_tok", most=MOST_EXPERTS)
    if top_k > number:
        config.problem(
            "num_experts_per_tok",
            f"a token cannot go to {top_k} of {number} experts",
            given=top_k,
            allowed=f"a whole number from 1 to {number}",
        )
    width = said.pop("ffn_size", None) or config.size(ffn_key)
    return MixtureOfExperts(experts=number, top_k=min(top_k, number), ffn_size=width, **said)


def sliding_layers(kinds: list[str]) -> tuple[int, ...]:
    """Positions of the layers that see a window (or a chunk) only."""
    return tuple(position for position, kind in enumerate(kinds) if kind in SLIDING_WORDS)


def every_layer(layers: int) -> tuple[int, ...]:
    return tuple(range(layers))


def layer_pattern(config: ConfigReader, layers: int, default: list[str]) -> list[str]:
    """The layer_types of the config, or the pattern of its class."""
    return config.layer_types(layers, ("full_attention", "sliding_attention", "chunked_attention")) or default


def alternating(layers: int, period: int) -> list[str]:
    """Sliding layers with a full one at every period-th place; period 0 or 1 means full everywhere."""
    return [
        "sliding_attention" if period > 1 and (position + 1) % period else "full_attention"
        for position in range(layers)
    ]
