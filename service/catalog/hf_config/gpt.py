"""Decoders in the line of GPT: LayerNorm, plain MLP, often one projection for queries, keys and values.

Read from the modelling code of transformers 5.24 (modeling_<model_type>.py of each family).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.catalog.bounds import MOST_HEADS, MOST_LAYERS
from service.catalog.hf_config.decoder import decoder
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.engine.architecture import Architecture

ALL_BIASES = {"attention_bias": True, "attention_out_bias": True, "mlp_bias": True}
#: MPT and BLOOM take any length; their configs name one only sometimes
USUAL_LENGTH = 2048


@reads("gpt2")
def gpt2(config: ConfigReader) -> Architecture:
    refuse_cross_attention(config)
    return decoder(config, **_gpt2(config), kv_heads=config.size("num_attention_heads", most=MOST_HEADS))


@reads("gpt_bigcode")
def gpt_bigcode(config: ConfigReader) -> Architecture:
    refuse_cross_attention(config)
    heads = config.size("num_attention_heads", most=MOST_HEADS)
    return decoder(config, **_gpt2(config), kv_heads=1 if config.flag("multi_query") else heads)


def _gpt2(config: ConfigReader) -> dict[str, Any]:
    return {
        "gated": False,
        "own_head_dim": False,
        "norm": "layernorm",
        "position": "learned",
        "fused_qkv": True,
        "ffn_size": _four_times(config),
        "dropout": config.rate("resid_pdrop"),
        "attention_dropout": config.rate("attn_pdrop"),
        "embedding_dropout": config.rate("embd_pdrop"),
        **ALL_BIASES,
    }


@reads("gpt_neo")
def gpt_neo(config: ConfigReader) -> Architecture:
    layers, heads = (
        config.size("num_hidden_layers", most=MOST_LAYERS),
        config.size("num_attention_heads", most=MOST_HEADS),
    )
    kinds = _attention_layers(config, layers)
    local = tuple(position for position, kind in enumerate(kinds) if kind == "local")
    return decoder(
        config,
        gated=False,
        own_head_dim=False,
        kv_heads=heads,
        norm="layernorm",
        position="learned",
        ffn_size=_four_times(config),
        attention_out_bias=True,
        mlp_bias=True,
        dropout=config.rate("resid_dropout"),
        embedding_dropout=config.rate("embed_dropout"),
        sliding_window=config.optional_size("window_size") if local else None,
        sliding_layers=local,
    )


def _attention_layers(config: ConfigReader, layers: int) -> list[str]:
    """GPT-Neo says [[["global", "local"], 12]]: the words, and how often they repeat."""
    listed = config.layer_types(layers, ("global", "local"), "attention_layers")
    if listed:
        return listed
    alternating = ["global" if position % 2 == 0 else "local" for position in range(layers)]
    expanded = config.repeated_words("attention_types", ("global", "local"), layers)
    return expanded or alternating


@reads("gptj")
def gptj(config: ConfigReader) -> Architecture:
    heads = config.size("num_attention_heads", most=MOST_HEADS)
    architecture = decoder(
        config,
        gated=False,
        own_head_dim=False,
        kv_heads=heads,
        norm="layernorm",
        norms_per_layer=1,
        parallel_block=True,
        ffn_size=_four_times(config),
        mlp_bias=True,
        head_bias=True,
        dropout=config.rate("resid_pdrop"),
        attention_dropout=config.rate("attn_pdrop"),
        embedding_dropout=config.rate("embd_pdrop"),
    )
    rotated = config.optional_size("rotary_dim") or architecture.head_dim
    return replace(architecture, rotary_fraction=min(rotated / architecture.head_dim, 1.0))


@reads("gpt_neox")
def gpt_neox(config: ConfigReader) -> Architecture:
    bias = config.flag("attention_bias")
    return decoder(
        config,
        gated=False,
        own_head_dim=False,
        kv_heads=config.size("num_attention_heads", most=MOST_HEADS),
        norm="layernorm",
        parallel_block=config.flag("use_parallel_residual"),
        fused_qkv=True,
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=True,
        dropout=config.rate("hidden_dropout"),
        rotary_fraction=config.fraction("partial_rotary_factor", "rotary_pct", default=0.25),
    )


@reads("phi")
def phi(config: ConfigReader) -> Architecture:
    qk_norm = config.flag("qk_layernorm")
    return decoder(
        config,
        gated=False,
        norm="layernorm",
        norms_per_layer=1,
        parallel_block=True,
        head_bias=True,
        qk_norm="head" if qk_norm else "none",
        qk_norm_bias=qk_norm,
        dropout=config.rate("resid_pdrop"),
        embedding_dropout=config.rate("embd_pdrop"),
        rotary_fraction=config.fraction("partial_rotary_factor", default=0.5),
        **ALL_BIASES,
    )


@reads("opt")
def opt(config: ConfigReader) -> Architecture:
    bias, before = config.flag("enable_bias"), config.flag("do_layer_norm_before")
    hidden = config.size("hidden_size")
    width = config.optional_size("word_embed_proj_dim") or hidden
    return decoder(
        config,
        gated=False,
        own_head_dim=False,
        kv_heads=config.size("num_attention_heads", most=MOST_HEADS),
        norm="layernorm" if config.flag("layer_norm_elementwise_affine") else "layernorm-no-weight",
        norm_placement="pre" if before else "post",
        final_norm=before and not config.flag("_remove_final_layer_norm"),
        position="learned",
        position_offset=2,
        embedding_size=None if width == hidden else width,
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=bias,
        dropout=config.rate("dropout"),
        embedding_dropout=0.0,
    )


@reads("bloom")
def bloom(config: ConfigReader) -> Architecture:
    return decoder(
        config,
        own_head_dim=False,
        kv_heads=config.size("num_attention_heads", most=MOST_HEADS),
        norm="layernorm",
        position="alibi",
        max_positions=config.optional_size("seq_length", most=2**27) or USUAL_LENGTH,
        activation="gelu",
        activation_function="bloom_gelu",
        ffn_size=4 * config.size("hidden_size"),
        fused_qkv=True,
        embedding_norm=True,
        dropout=config.rate("hidden_dropout"),
        embedding_dropout=0.0,
        **ALL_BIASES,
    )


@reads("falcon")
def falcon(config: ConfigReader) -> Architecture:
    """The qkv width and the norms follow three switches (modeling_falcon.py, FalconAttention, FalconDecoderLayer)."""
    heads, new = config.size("num_attention_heads", most=MOST_HEADS), config.flag("new_decoder_architecture")
    parallel, bias = config.flag("parallel_attn"), config.flag("bias")
    grouped = config.optional_size("num_key_value_heads", most=MOST_HEADS) or heads
    one = config.flag("multi_query") and not new
    hidden = config.size("hidden_size")
    return decoder(
        config,
        gated=False,
        own_head_dim=False,
        kv_heads=grouped if new else 1 if one else heads,
        norm="layernorm",
        norms_per_layer=_falcon_norms(config, new=new, parallel=parallel),
        parallel_block=parallel or new,
        position="alibi" if config.flag("alibi") else "rope",
        ffn_size=config.optional_size("intermediate_size") or 4 * hidden,
        fused_qkv=True,
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=bias,
        dropout=config.rate("hidden_dropout"),
        embedding_dropout=0.0,
    )


def _falcon_norms(config: ConfigReader, *, new: bool, parallel: bool) -> int:
    if not parallel:
        return 2
    asked = config.optional_size("num_ln_in_parallel_attn", least=1, most=2)
    return 2 if asked == 2 or (asked is None and new) else 1


@reads("mpt")
def mpt(config: ConfigReader) -> Architecture:
    """The MLP is four times hidden_size and there are no biases, whatever the config says (modeling_mpt.py)."""
    attention = config.section("attn_config")
    rate = attention.rate("attn_pdrop")
    return decoder(
        config,
        own_head_dim=False,
        kv_heads=config.size("num_attention_heads", most=MOST_HEADS),
        norm="layernorm-no-bias",
        position="alibi",
        activation="gelu",
        activation_function="gelu",
        ffn_size=4 * config.size("hidden_size"),
        fused_qkv=True,
        dropout=rate,
        attention_dropout=rate,
        embedding_dropout=0.0,
    )


def refuse_cross_attention(config: ConfigReader) -> None:
    """A decoder that also looks at an encoder is two models; only whole encoder-decoders are described here."""
    if config.flag("add_cross_attention"):
        config.problem("add_cross_attention", "cross-attention in a decoder alone is not supported", allowed="false")


def _four_times(config: ConfigReader) -> int:
    return config.optional_size("intermediate_size") or 4 * config.size("hidden_size")
