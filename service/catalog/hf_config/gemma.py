"""The Gemma family: GeGLU, own head width, sandwich norms, sliding windows, and what 3n and 4 add."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.catalog.bounds import MOST_HEADS, MOST_LAYERS, MOST_VOCAB
from service.catalog.hf_config.decoder import alternating, decoder, every_layer, experts, layer_pattern
from service.catalog.hf_config.llama_like import attention_biases, windows
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.engine.architecture import Architecture, ExtraTensor


@reads("gemma")
def gemma(config: ConfigReader) -> Architecture:
    return decoder(config, **attention_biases(config))


@reads("gemma2")
def gemma2(config: ConfigReader) -> Architecture:
    architecture = decoder(config, **_sandwich(config), attention_softcap=config.present("attn_logit_softcapping"))
    return windows(config, architecture, period=2)


@reads("gemma3_text")
def gemma3(config: ConfigReader) -> Architecture:
    architecture = decoder(config, **_sandwich(config), qk_norm="head")
    return windows(config, architecture, period=config.optional_size("sliding_window_pattern", least=0) or 6)


@reads("gemma3n_text")
def gemma3n(config: ConfigReader) -> Architecture:
    """AltUp, LAuReL and per-layer embeddings as extra tensors (modeling_gemma3n.py)."""
    widths = _widths(config)
    architecture = decoder(config, **_sandwich(config), qk_norm="head", ffn_size=widths[0], ffn_sizes=tuple(widths))
    architecture = windows(config, architecture, period=5)
    shared = _shared_layers(config, architecture.layers)
    return replace(
        architecture,
        ffn_sizes=() if len(set(widths)) == 1 else tuple(widths),
        kv_shared_layers=shared,
        extra_tensors=(*_altup(config, architecture), *_per_layer_embeddings(config, architecture)),
    )


@reads("gemma4_text")
def gemma4(config: ConfigReader) -> Architecture:
    """Full-attention layers have their own head width and may use keys as values (modeling_gemma4.py)."""
    layers, moe = config.size("num_hidden_layers", most=MOST_LAYERS), config.flag("enable_moe_block")
    routed = experts(config, beside_dense=True) if moe else None
    architecture = decoder(config, **_sandwich(config), qk_norm="head", moe=routed)
    kinds = layer_pattern(config, layers, alternating(layers, 6))
    kinds[-1] = "full_attention"
    keys_are_values = config.flag("attention_k_eq_v")
    global_heads = config.optional_size("num_global_key_value_heads", most=MOST_HEADS) if keys_are_values else None
    shared = _shared_layers(config, layers)
    wide = 2 if config.flag("use_double_wide_mlp") else 1
    width = architecture.ffn_size or 1
    return replace(
        architecture,
        sliding_window=config.optional_size("sliding_window", most=2**30),
        sliding_layers=tuple(p for p, kind in enumerate(kinds) if kind != "full_attention"),
        full_head_dim=config.optional_size("global_head_dim") or 512,
        full_kv_heads=global_heads,
        full_keys_are_values=keys_are_values,
        kv_shared_layers=shared,
        ffn_sizes=tuple(width * wide if p in shared else width for p in range(layers)) if wide > 1 and shared else (),
        extra_tensors=(
            *(_moe_extras(architecture) if routed else ()),
            *_per_layer_embeddings(config, architecture),
        ),
    )


def _sandwich(config: ConfigReader) -> dict[str, Any]:
    return {
        "norms_per_layer": 4,
        "norm_placement": "sandwich",
        "logit_softcap": config.present("final_logit_softcapping"),
        **attention_biases(config),
    }


def _widths(config: ConfigReader) -> list[int]:
    """Gemma 3n may give one MLP width a layer."""
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    listed = config.listed_sizes("intermediate_size", layers)
    return listed if listed else [config.size("intermediate_size")] * layers


def _shared_layers(config: ConfigReader, layers: int) -> tuple[int, ...]:
    """The last layers take keys and values from earlier ones."""
    shared = config.optional_size("num_kv_shared_layers", most=MOST_LAYERS, least=0) or 0
    if shared > layers:
        config.problem(
            "num_kv_shared_layers", f"{shared} of {layers} layers cannot share", given=shared, allowed=f"0 to {layers}"
        )
    return tuple(range(max(layers - shared, 0), layers))


def _moe_extras(architecture: Architecture) -> tuple[ExtraTensor, ...]:
    everywhere, hidden = every_layer(architecture.layers), (architecture.hidden_size,)
    norms = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")
    number = architecture.moe.experts if architecture.moe else 1
    return (
        *(ExtraTensor(name=f"{name}.weight", module="norm", shape=hidden, layers=everywhere) for name in norms),
        ExtraTensor(name="router.scale", module="router", shape=hidden, layers=everywhere),
        ExtraTensor(name="router.per_expert_scale", module="router", shape=(number,), layers=everywhere),
    )


def _per_layer_embeddings(config: ConfigReader, architecture: Architecture) -> tuple[ExtraTensor, ...]:
    """An embedding table and projection whose output feeds each layer (PLE)."""
    width = config.optional_size("hidden_size_per_layer_input", least=0) or 0
    if not width:
        return ()
    layers, hidden, everywhere = architecture.layers, architecture.hidden_size, every_layer(architecture.layers)
    vocab = config.size("vocab_size_per_layer_input", most=MOST_VOCAB)
    return (
        ExtraTensor(
            name="embed_tokens_per_layer.weight", module="embedding", shape=(vocab, layers * width), shards="tp"
        ),
        ExtraTensor(name="per_layer_model_projection.weight", module="embedding", shape=(layers * width, hidden)),
        ExtraTensor(name="per_layer_projection_norm.weight", module="norm", shape=(width,)),
        ExtraTensor(name="per_layer_input_gate.weight", module="mlp", shape=(width, hidden), layers=everywhere),
        ExtraTensor(name="per_layer_projection.weight", module="mlp", shape=(hidden, width), layers=everywhere),
        ExtraTensor(name="post_per_layer_input_norm.weight", module="norm", shape=(hidden,), layers=everywhere),
    )


def _altup(config: ConfigReader, architecture: Architecture) -> tuple[ExtraTensor, ...]:
    inputs = config.size("altup_num_inputs", most=64)
    rank, hidden, everywhere = config.size("laurel_rank"), architecture.hidden_size, every_layer(architecture.layers)
    in_layers = (
        ("altup.correct_output_scale", "norm", (hidden,)),
        ("altup.correction_coefs.weight", "mlp", (inputs, inputs)),
        ("altup.prediction_coefs.weight", "mlp", (inputs * inputs, inputs)),
        ("altup.modality_router.weight", "mlp", (inputs, hidden)),
        ("altup.router_norm.weight", "norm", (hidden,)),
        ("laurel.linear_left.weight", "mlp", (rank, hidden)),
        ("laurel.linear_right.weight", "mlp", (hidden, rank)),
        ("laurel.post_laurel_norm.weight", "norm", (hidden,)),
    )
    once = (
        ExtraTensor(name=f"altup_{name}.{index}.weight", module="embedding", shape=(hidden, hidden))
        for name in ("projections", "unembed_projections")
        for index in range(inputs - 1)
    )
    return (
        *(ExtraTensor(name=name, module=module, shape=shape, layers=everywhere) for name, module, shape in in_layers),
        *once,
    )
