"""Decoders with multi-head latent attention: DeepSeek-V2, V3, V3.2 and the GLM models built on them.

Read from the modelling code of transformers 5.24 (modeling_<model_type>.py of each family).
"""

from __future__ import annotations

from typing import Any

from service.catalog.bounds import MOST_EXPERTS, MOST_HEADS, MOST_LAYERS
from service.catalog.hf_config.decoder import decoder, experts
from service.catalog.hf_config.llama_like import attention_biases
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.engine.architecture import Architecture, ExtraTensor, LatentAttention


@reads("deepseek_v2")
def deepseek_v2(config: ConfigReader) -> Architecture:
    return decoder(config, **_latent(config), **_first_dense(config), mlp_bias=config.flag("mlp_bias"))


@reads("deepseek_v3")
def deepseek_v3(config: ConfigReader) -> Architecture:
    return decoder(config, **_latent(config), **_first_dense(config))


@reads("deepseek_v32")
def deepseek_v32(config: ConfigReader) -> Architecture:
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    indexed = tuple(range(layers))
    return decoder(
        config,
        **_latent(config),
        **_by_layer_types(config, layers),
        extra_tensors=_indexer(config, indexed),
    )


@reads("glm4_moe_lite")
def glm4_moe_lite(config: ConfigReader) -> Architecture:
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    return decoder(config, **_latent(config), **_by_layer_types(config, layers, dense=1))


@reads("glm_moe_dsa")
def glm_moe_dsa(config: ConfigReader) -> Architecture:
    """Layers marked "shared" reuse the choice of the indexer before them and have none (modeling_glm_moe_dsa.py)."""
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    indexed = tuple(position for position, kind in enumerate(_indexer_types(config, layers)) if kind == "full")
    return decoder(
        config,
        **_latent(config),
        **_by_layer_types(config, layers),
        extra_tensors=_indexer(config, indexed),
    )


def _latent(config: ConfigReader) -> dict[str, Any]:
    heads = config.size("num_attention_heads", most=MOST_HEADS)
    mla = LatentAttention(
        q_lora_rank=config.optional_size("q_lora_rank"),
        kv_lora_rank=config.size("kv_lora_rank"),
        qk_nope_head_dim=config.size("qk_nope_head_dim", most=MOST_HEADS),
        qk_rope_head_dim=config.size("qk_rope_head_dim", most=MOST_HEADS),
        v_head_dim=config.size("v_head_dim", most=MOST_HEADS),
    )
    said = (
        config.optional_size("num_nextn_predict_layers", least=0, most=MOST_LAYERS)
        if config.has("num_nextn_predict_layers")
        else None
    )
    if said:
        config.note(
            "mtp_left_out",
            f"num_nextn_predict_layers is {said}: multi-token-prediction modules are not counted, as transformers "
            "does not build them; ask for them with mtp_layers in an architecture",
        )
    return {
        "heads": heads,
        "kv_heads": heads,
        "head_dim": mla.qk_head_dim,
        "mla": mla,
        "fused_experts": True,
        **attention_biases(config),
    }


def _first_dense(config: ConfigReader) -> dict[str, Any]:
    dense = config.size("first_k_dense_replace", least=0, most=MOST_LAYERS)
    return {"moe": experts(config, first_dense_layers=dense, **_shared(config))}


def _by_layer_types(config: ConfigReader, layers: int, dense: int | None = None) -> dict[str, Any]:
    """mlp_layer_types names dense and sparse layers; without it the first few are dense."""
    kinds = config.layer_types(layers, ("dense", "sparse"), "mlp_layer_types")
    if kinds is None:
        first = config.size("first_k_dense_replace", least=0, most=MOST_LAYERS) if dense is None else dense
        return {"moe": experts(config, first_dense_layers=first, **_shared(config))}
    places = tuple(position for position, kind in enumerate(kinds) if kind == "sparse")
    return {"moe": experts(config, places=places, **_shared(config))}


def _shared(config: ConfigReader) -> dict[str, Any]:
    return {
        "shared_experts": config.size("num_shared_experts", least=0, most=MOST_EXPERTS),
        "shared_ffn_size": config.size("moe_intermediate_size"),
    }


def _indexer_types(config: ConfigReader, layers: int) -> list[str]:
    listed = config.layer_types(layers, ("full", "shared"), "indexer_types")
    if listed:
        return listed
    pattern = config.word("index_topk_pattern")
    if pattern:
        if len(pattern) != layers or set(pattern) - {"F", "S"}:
            config.problem("index_topk_pattern", "index_topk_pattern is not usable", allowed=f"{layers} letters F or S")
            return ["full"] * layers
        return ["full" if letter == "F" else "shared" for letter in pattern]
    every = max(config.optional_size("index_topk_freq", least=0) or 1, 1)
    offset = config.optional_size("index_skip_topk_offset", least=0)
    start = 2 if offset is None else offset
    return ["full" if max(position - start + 1, 0) % every == 0 else "shared" for position in range(layers)]


def _indexer(config: ConfigReader, layers: tuple[int, ...]) -> tuple[ExtraTensor, ...]:
    """DeepSeek sparse attention's indexer: which keys each query may see (arXiv:2512.02556, section 2.1)."""
    heads, width = config.size("index_n_heads", most=MOST_HEADS), config.size("index_head_dim", most=MOST_HEADS)
    hidden, rank = config.size("hidden_size"), config.size("q_lora_rank")
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = (
        ("wq_b.weight", (heads * width, rank)),
        ("wk.weight", (width, hidden)),
        ("k_norm.weight", (width,)),
        ("k_norm.bias", (width,)),
        ("weights_proj.weight", (heads, hidden)),
    )
    return tuple(
        ExtraTensor(name=f"self_attn.indexer.{name}", module="attention", shape=shape, layers=layers)
        for name, shape in (shapes if layers else ())
    )
