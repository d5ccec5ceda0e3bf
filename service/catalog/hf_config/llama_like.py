"""Dense decoders built like Llama: gated MLP, separate projections, rotary positions.

Read from the modelling code of transformers 5.24 (modeling_<model_type>.py of each family).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.catalog.hf_config.decoder import alternating, decoder, layer_pattern, sliding_layers
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.engine.architecture import Architecture


@reads("llama", "granite")
def llama(config: ConfigReader) -> Architecture:
    return decoder(config, **attention_biases(config), mlp_bias=config.flag("mlp_bias"))


@reads("internlm3")
def internlm3(config: ConfigReader) -> Architecture:
    bias = config.flag("bias")
    return decoder(config, attention_bias=config.flag("qkv_bias"), attention_out_bias=bias, mlp_bias=bias)


@reads("mistral")
def mistral(config: ConfigReader) -> Architecture:
    return window_everywhere(config, decoder(config))


@reads("phi3")
def phi3(config: ConfigReader) -> Architecture:
    architecture = decoder(
        config,
        fused_qkv=True,
        fused_gate_up=True,
        dropout=config.rate("resid_pdrop"),
        embedding_dropout=0.0,
        rotary_fraction=config.fraction("partial_rotary_factor", default=1.0),
    )
    return window_everywhere(config, architecture)


@reads("qwen2", "qwen2_5_vl_text")
def qwen2(config: ConfigReader) -> Architecture:
    return window_above(config, decoder(config, attention_bias=True))


@reads("qwen3")
def qwen3(config: ConfigReader) -> Architecture:
    return window_above(config, decoder(config, qk_norm="head", **attention_biases(config)))


@reads("qwen3_vl_text")
def qwen3_vl(config: ConfigReader) -> Architecture:
    return decoder(config, qk_norm="head", **attention_biases(config))


@reads("seed_oss")
def seed_oss(config: ConfigReader) -> Architecture:
    return decoder(
        config,
        attention_bias=config.flag("attention_bias"),
        attention_out_bias=config.flag("attention_out_bias"),
        mlp_bias=config.flag("mlp_bias"),
        dropout=config.rate("residual_dropout"),
        embedding_dropout=0.0,
    )


@reads("ernie4_5")
def ernie(config: ConfigReader) -> Architecture:
    bias = config.flag("use_bias")
    return decoder(config, attention_bias=bias, attention_out_bias=bias, mlp_bias=bias)


@reads("glm")
def glm(config: ConfigReader) -> Architecture:
    return decoder(config, **_glm(config))


@reads("glm4")
def glm4(config: ConfigReader) -> Architecture:
    return decoder(config, **_glm(config), norms_per_layer=4, norm_placement="sandwich")


def _glm(config: ConfigReader) -> dict[str, Any]:
    return {
        "attention_bias": config.flag("attention_bias"),
        "fused_gate_up": True,
        "rotary_fraction": config.fraction("partial_rotary_factor", default=0.5),
    }


@reads("olmo")
def olmo(config: ConfigReader) -> Architecture:
    return decoder(config, norm="layernorm-no-weight", **attention_biases(config))


@reads("olmo2")
def olmo2(config: ConfigReader) -> Architecture:
    return decoder(config, norm_placement="branch", qk_norm="full", **attention_biases(config))


@reads("olmo3")
def olmo3(config: ConfigReader) -> Architecture:
    architecture = decoder(config, norm_placement="branch", qk_norm="full", **attention_biases(config))
    return windows(config, architecture, period=4)


@reads("exaone4")
def exaone4(config: ConfigReader) -> Architecture:
    """Full-attention layers have no positions where others have a window (modeling_exaone4.py, Exaone4Attention)."""
    architecture = decoder(config, norm_placement="branch", qk_norm="head")
    if not config.present("sliding_window"):
        return architecture
    return without_positions_where_full(windows(config, architecture, period=_pattern_period(config, 4)))


@reads("cohere")
def cohere(config: ConfigReader) -> Architecture:
    return decoder(config, **_cohere(config), qk_norm="per-head" if config.flag("use_qk_norm") else "none")


@reads("cohere2")
def cohere2(config: ConfigReader) -> Architecture:
    """Only layers with a window rotate (modeling_cohere2.py, Cohere2Attention)."""
    architecture = windows(config, decoder(config, **_cohere(config)), period=_pattern_period(config, 4))
    return without_positions_where_full(architecture)


def _cohere(config: ConfigReader) -> dict[str, Any]:
    return {"norm": "layernorm-no-bias", "norms_per_layer": 1, "parallel_block": True, **attention_biases(config)}


@reads("stablelm")
def stablelm(config: ConfigReader) -> Architecture:
    parallel = config.flag("use_parallel_residual")
    return decoder(
        config,
        own_head_dim=False,
        norm="layernorm",
        attention_bias=config.flag("use_qkv_bias"),
        qk_norm="per-head" if config.flag("qk_layernorm") else "none",
        parallel_block=parallel,
        norms_per_layer=1 if parallel else 2,
        dropout=config.rate("hidden_dropout"),
        embedding_dropout=0.0,
        rotary_fraction=config.fraction("partial_rotary_factor", "rope_pct", default=0.25),
    )


@reads("starcoder2")
def starcoder2(config: ConfigReader) -> Architecture:
    bias = config.flag("use_bias")
    architecture = decoder(
        config,
        gated=False,
        norm="layernorm",
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=bias,
        dropout=config.rate("residual_dropout"),
        embedding_dropout=config.rate("embedding_dropout"),
    )
    return window_everywhere(config, architecture)


@reads("nemotron")
def nemotron(config: ConfigReader) -> Architecture:
    return decoder(
        config,
        gated=False,
        norm="layernorm",
        **attention_biases(config),
        mlp_bias=config.flag("mlp_bias"),
        rotary_fraction=config.fraction("partial_rotary_factor", "rope_percent", default=0.5),
    )


@reads("apertus")
def apertus(config: ConfigReader) -> Architecture:
    return decoder(config, gated=False, qk_norm="head", **attention_biases(config))


def attention_biases(config: ConfigReader) -> dict[str, bool]:
    """One switch for queries, keys, values and output."""
    bias = config.flag("attention_bias")
    return {"attention_bias": bias, "attention_out_bias": bias}


def window_everywhere(config: ConfigReader, architecture: Architecture) -> Architecture:
    """Every layer sees the window, if there is one (Mistral)."""
    if not config.present("sliding_window"):
        return architecture
    return _with_window(config, architecture, tuple(range(architecture.layers)))


def window_above(config: ConfigReader, architecture: Architecture) -> Architecture:
    """Layers from max_window_layers on see the window, if it is switched on (Qwen2, Qwen3)."""
    if not config.flag("use_sliding_window") or not config.present("sliding_window"):
        return architecture
    first = config.size("max_window_layers", least=0)
    layers = architecture.layers
    default = ["sliding_attention" if position >= first else "full_attention" for position in range(layers)]
    return _with_window(config, architecture, sliding_layers(layer_pattern(config, layers, default)))


def windows(config: ConfigReader, architecture: Architecture, period: int) -> Architecture:
    """The layers that layer_types names, or all but every period-th, see the window."""
    default = alternating(architecture.layers, period)
    sliding = sliding_layers(layer_pattern(config, architecture.layers, default))
    return _with_window(config, architecture, sliding)


def without_positions_where_full(architecture: Architecture) -> Architecture:
    full = set(range(architecture.layers)) - set(architecture.sliding_layers)
    return replace(architecture, nope_layers=tuple(sorted(full)))


def _with_window(config: ConfigReader, architecture: Architecture, sliding: tuple[int, ...]) -> Architecture:
    window = config.optional_size("sliding_window", most=2**30, least=0)
    return replace(architecture, sliding_window=window, sliding_layers=sliding if window else ())


def _pattern_period(config: ConfigReader, default: int) -> int:
    """Every how many layers one sees everything: a number, or a word with a letter a layer ("LLLG")."""
    if config.is_text("sliding_window_pattern"):
        return len(config.word("sliding_window_pattern") or "")
    period = config.optional_size("sliding_window_pattern", least=0)
    return default if period is None else period
