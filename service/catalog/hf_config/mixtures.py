"""Decoders with routed experts and ordinary attention.

Read from the modelling code of transformers 5.24 (modeling_<model_type>.py of each family); Grok-1 and Arctic, which
have no class there, from their own published code.
"""

from __future__ import annotations

from dataclasses import replace

from service.catalog.bounds import MOST_EXPERTS, MOST_HEADS, MOST_LAYERS
from service.catalog.hf_config.decoder import alternating, decoder, experts, layer_pattern, sliding_layers
from service.catalog.hf_config.llama_like import attention_biases, window_everywhere, windows
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.catalog.members import whole
from service.engine.architecture import Architecture, ExtraTensor


@reads("mixtral")
def mixtral(config: ConfigReader) -> Architecture:
    moe = experts(config, ffn_key="intermediate_size")
    return window_everywhere(config, decoder(config, ffn_size=None, moe=moe, fused_experts=True))


@reads("phimoe")
def phimoe(config: ConfigReader) -> Architecture:
    architecture = decoder(
        config,
        norm="layernorm",
        ffn_size=None,
        moe=experts(config, ffn_key="intermediate_size"),
        fused_experts=True,
        head_bias=config.flag("lm_head_bias"),
        **attention_biases(config),
    )
    return window_everywhere(config, architecture)


@reads("minimax_m2")
def minimax_m2(config: ConfigReader) -> Architecture:
    moe = experts(config, ffn_key="intermediate_size")
    architecture = decoder(config, ffn_size=None, moe=moe, fused_experts=True, qk_norm="full")
    rotated = config.optional_size("rotary_dim")
    share = min(rotated / architecture.head_dim, 1.0) if rotated else 1.0
    return replace(architecture, rotary_fraction=config.fraction("partial_rotary_factor", default=share))


@reads("granitemoe")
def granitemoe(config: ConfigReader) -> Architecture:
    moe = experts(config, ffn_key="intermediate_size")
    return decoder(config, ffn_size=None, moe=moe, fused_experts=True, **attention_biases(config))


@reads("olmoe")
def olmoe(config: ConfigReader) -> Architecture:
    normalised = config.flag("norm_topk_prob")
    moe = experts(config, ffn_key="intermediate_size", normalised_weights=normalised)
    return decoder(config, ffn_size=None, moe=moe, fused_experts=True, qk_norm="full", **attention_biases(config))


@reads("gpt_oss")
def gpt_oss(config: ConfigReader) -> Architecture:
    moe = experts(config, ffn_key="intermediate_size", router_bias=True, expert_bias=True)
    architecture = decoder(
        config, ffn_size=None, moe=moe, fused_experts=True, attention_sinks=True, **attention_biases(config)
    )
    return windows(config, architecture, period=2)


@reads("qwen2_moe")
def qwen2_moe(config: ConfigReader) -> Architecture:
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    shared = config.size("shared_expert_intermediate_size", least=0)
    moe = experts(
        config,
        places=_sparse_steps(config, layers),
        shared_experts=1 if shared else 0,
        shared_ffn_size=shared,
        shared_gate=True,
        normalised_weights=config.flag("norm_topk_prob"),
    )
    architecture = decoder(config, moe=moe, fused_experts=True, attention_bias=config.flag("qkv_bias"))
    if not config.flag("use_sliding_window") or not config.present("sliding_window"):
        return architecture
    below = config.size("max_window_layers", least=0)
    default = alternating(layers, 2)[: min(below, layers)] + ["full_attention"] * max(layers - below, 0)
    sliding = sliding_layers(layer_pattern(config, layers, default))
    return replace(architecture, sliding_window=config.optional_size("sliding_window"), sliding_layers=sliding)


@reads("qwen3_moe")
def qwen3_moe(config: ConfigReader) -> Architecture:
    architecture = qwen3_vl_moe(config)
    return window_everywhere(config, architecture) if config.flag("use_sliding_window") else architecture


@reads("qwen3_vl_moe_text")
def qwen3_vl_moe(config: ConfigReader) -> Architecture:
    places = _sparse_steps(config, config.size("num_hidden_layers", most=MOST_LAYERS))
    moe = experts(config, places=places, normalised_weights=config.flag("norm_topk_prob"))
    return decoder(config, moe=moe, fused_experts=True, qk_norm="head", **attention_biases(config))


def _sparse_steps(config: ConfigReader, layers: int) -> tuple[int, ...]:
    """Every decoder_sparse_step-th layer that mlp_only_layers does not name is routed (Qwen2-MoE, Qwen3-MoE)."""
    step, dense = (
        config.size("decoder_sparse_step", most=MOST_LAYERS),
        config.positions("mlp_only_layers", layers) or (),
    )
    return tuple(position for position in range(layers) if (position + 1) % step == 0 and position not in set(dense))


@reads("glm4_moe")
def glm4_moe(config: ConfigReader) -> Architecture:
    moe = experts(
        config,
        first_dense_layers=config.size("first_k_dense_replace", least=0, most=MOST_LAYERS),
        shared_experts=config.size("num_shared_experts", least=0, most=MOST_EXPERTS),
        shared_ffn_size=config.size("moe_intermediate_size"),
    )
    return decoder(
        config,
        moe=moe,
        fused_experts=True,
        attention_bias=config.flag("attention_bias"),
        qk_norm="head" if config.flag("use_qk_norm") else "none",
        rotary_fraction=config.fraction("partial_rotary_factor", default=0.5),
    )


@reads("ernie4_5_moe")
def ernie_moe(config: ConfigReader) -> Architecture:
    """Score corrections are parameters here, and use_bias also gives the head one (modeling_ernie4_5_moe.py)."""
    layers, bias = config.size("num_hidden_layers", most=MOST_LAYERS), config.flag("use_bias")
    first = config.size("moe_layer_start_index", least=0, most=MOST_LAYERS)
    last = config.signed("moe_layer_end_index", -1)
    step = config.size("moe_layer_interval", most=MOST_LAYERS)
    end = layers - 1 if last == -1 else last
    places = tuple(position for position in range(layers) if (position + 1) % step == 0 and first <= position <= end)
    shared = config.size("num_shared_experts", least=0, most=MOST_EXPERTS)
    moe = experts(config, places=places, shared_experts=shared, shared_ffn_size=config.size("moe_intermediate_size"))
    scores = ExtraTensor(
        name="mlp.gate.e_score_correction_bias", module="router", shape=(1, moe.experts), layers=places
    )
    return decoder(
        config,
        moe=moe,
        fused_experts=True,
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=bias,
        head_bias=bias,
        extra_tensors=(scores,) if places else (),
    )


@reads("hunyuan_v1_moe")
def hunyuan(config: ConfigReader) -> Architecture:
    """One shared MLP as wide as an expert; moe_topk may be a list of equal numbers (modeling_hunyuan_v1_moe.py)."""
    width = config.size("intermediate_size")
    moe = experts(
        config,
        ffn_size=width,
        experts=config.size_or_equal_list("num_experts", most=MOST_EXPERTS),
        top_k=config.size_or_equal_list("num_experts_per_tok", most=MOST_EXPERTS),
        shared_experts=1,
        shared_ffn_size=width,
    )
    return decoder(config, ffn_size=None, moe=moe, fused_experts=True, qk_norm="head", **attention_biases(config))


@reads("dbrx")
def dbrx(config: ConfigReader) -> Architecture:
    attention, ffn = config.section("attn_config"), config.section("ffn_config")
    heads = config.size("num_attention_heads", most=MOST_HEADS)
    kv_heads = attention.size("num_key_value_heads", most=MOST_HEADS)
    if heads % kv_heads:
        attention.problem(
            "num_key_value_heads", f"{heads} heads cannot share {kv_heads} evenly", allowed=f"a divisor of {heads}"
        )
    moe = experts(ffn, ffn_key="intermediate_size")
    return decoder(
        config,
        own_head_dim=False,
        kv_heads=kv_heads,
        norm="layernorm-no-bias",
        ffn_size=None,
        activation="swiglu",
        activation_function="silu",
        moe=moe,
        fused_qkv=True,
        dropout=config.rate("resid_pdrop"),
        attention_dropout=attention.rate("attn_pdrop"),
        embedding_dropout=0.0,
    )


@reads("llama4_text")
def llama4(config: ConfigReader) -> Architecture:
    """Routed layers have a shared expert as wide as a routed one; some layers do not rotate (modeling_llama4.py)."""
    layers, width = config.size("num_hidden_layers", most=MOST_LAYERS), config.size("intermediate_size")
    step = config.size("interleave_moe_layer_step", most=MOST_LAYERS)
    places = config.positions("moe_layers", layers)
    if places is None:
        places = tuple(range(step - 1, layers, step))
    moe = experts(config, ffn_size=width, places=places, shared_experts=1, shared_ffn_size=width)
    architecture = decoder(
        config,
        ffn_size=config.size("intermediate_size_mlp"),
        moe=moe,
        fused_experts=True,
        qk_norm="unweighted" if config.flag("use_qk_norm") else "none",
        **attention_biases(config),
    )
    rotated = _llama4_rotated(config, layers)
    chunk = config.optional_size("attention_chunk_size", most=2**30)
    default = ["chunked_attention" if rotates and chunk else "full_attention" for rotates in rotated]
    sliding = sliding_layers(layer_pattern(config, layers, default))
    return replace(
        architecture,
        nope_layers=tuple(position for position, rotates in enumerate(rotated) if not rotates),
        sliding_window=chunk,
        sliding_layers=sliding if chunk else (),
    )


def _llama4_rotated(config: ConfigReader, layers: int) -> list[bool]:
    """no_rope_layers holds 1 where a layer DOES rotate; without it every n-th does not."""
    read = config.per_layer("no_rope_layers", layers, whole, "0 or 1") if config.has("no_rope_layers") else None
    if read:
        return [bool(entry) for entry in read]
    interval = config.size("no_rope_layer_interval", most=MOST_LAYERS)
    return [(position + 1) % interval != 0 for position in range(layers)]


@reads("minimax_m3_vl_text")
def minimax_m3(config: ConfigReader) -> Architecture:
    """Dense and routed layers by mlp_layer_types; sparse attention adds an indexer (modeling_minimax_m3_vl.py)."""
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    mlps = config.layer_types(layers, ("dense", "sparse"), "mlp_layer_types")
    if mlps is None:
        frequency = config.per_layer("moe_layer_freq", layers, whole, "0 or 1")
        mlps = ["sparse" if routed else "dense" for routed in frequency or [1] * layers]
    places = tuple(position for position, kind in enumerate(mlps) if kind == "sparse")
    moe = experts(
        config,
        ffn_key="intermediate_size",
        places=places,
        shared_experts=1,
        shared_ffn_size=config.size("shared_intermediate_size"),
    )
    architecture = decoder(
        config,
        ffn_size=config.size("dense_intermediate_size"),
        moe=moe,
        fused_gate_up=True,
        fused_experts=True,
        qk_norm="head",
        activation="swiglu",
        activation_function="silu",
    )
    rotated = config.optional_size("rotary_dim") or architecture.head_dim
    return replace(
        architecture,
        rotary_fraction=min(rotated / architecture.head_dim, 1.0),
        extra_tensors=_minimax_indexer(config, architecture),
    )


def _minimax_indexer(config: ConfigReader, architecture: Architecture) -> tuple[ExtraTensor, ...]:
    layers, sparse = architecture.layers, config.section("sparse_attention_config")
    kinds = config.layer_types(layers, ("full_attention", "minimax_m3_sparse"))
    if kinds is None:
        frequency = sparse.per_layer("sparse_attention_freq", layers, whole, "0 or 1")
        kinds = ["minimax_m3_sparse" if on else "full_attention" for on in frequency or [0] * layers]
    places = tuple(position for position, kind in enumerate(kinds) if kind == "minimax_m3_sparse")
    heads = sparse.optional_size("sparse_num_index_heads") or config.size("index_n_heads", most=MOST_HEADS)
    width = sparse.optional_size("sparse_index_dim") or config.size("index_head_dim")
    hidden = architecture.hidden_size
    shapes = (
        ("q_proj", (heads * width, hidden)),
        ("k_proj", (width, hidden)),
        ("q_norm", (width,)),
        ("k_norm", (width,)),
    )
    return tuple(
        ExtraTensor(name=f"self_attn.indexer.{name}.weight", module="attention", shape=shape, layers=places)
        for name, shape in (shapes if places else ())
    )


@reads("grok1")
def grok1(config: ConfigReader) -> Architecture:
    """xai-org/grok-1 model.py: GeGLU experts, four RMSNorms a layer, soft-capped attention, tied embedding."""
    return decoder(
        config,
        ffn_size=None,
        moe=experts(config, ffn_key="intermediate_size"),
        activation="geglu",
        activation_function="gelu",
        norms_per_layer=4,
        norm_placement="sandwich",
        attention_softcap=True,
    )


@reads("arctic")
def arctic(config: ConfigReader) -> Architecture:
    """Every layer adds a dense MLP, as wide as hidden_size and with its own norm (Snowflake/snowflake-arctic-base)."""
    hidden = config.size("hidden_size")
    width = config.optional_size("dense_residual_ffn") or hidden
    moe = experts(config, ffn_key="intermediate_size", beside_dense=True)
    layers = tuple(range(config.size("num_hidden_layers", most=MOST_LAYERS)))
    third = ExtraTensor(name="residual_layernorm.weight", module="norm", shape=(hidden,), layers=layers)
    return decoder(config, ffn_size=width, moe=moe, extra_tensors=(third,))
