"""Small models whose saved tensors are measured: one a kind of modelling code."""

from __future__ import annotations

from typing import Any

_WIDTHS = {"vocab_size": 503, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6}
_LLAMA = {**_WIDTHS, "num_key_value_heads": 2, "intermediate_size": 352, "max_position_embeddings": 256}

#: configs by a name of their own; every dropout is 0, since the CPU keeps masks in another dtype than a GPU does
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **_LLAMA},
    "llama, as many key heads as query heads": {"model_type": "llama", **_LLAMA, "num_key_value_heads": 6},
    "mistral": {"model_type": "mistral", **_LLAMA, "sliding_window": None},
    "qwen2": {"model_type": "qwen2", **_LLAMA},
    "qwen3": {"model_type": "qwen3", **_LLAMA, "head_dim": 16},
    "gemma2": {"model_type": "gemma2", **_LLAMA, "head_dim": 16},
    "gemma3": {"model_type": "gemma3_text", **_LLAMA, "head_dim": 16, "sliding_window": 128},
    "olmo2": {"model_type": "olmo2", **_LLAMA},
    "phi3": {"model_type": "phi3", **_LLAMA, "pad_token_id": 0},
    "glm4": {"model_type": "glm4", **_LLAMA, "head_dim": 16, "pad_token_id": 0},
    "cohere": {"model_type": "cohere", **_LLAMA},
    "apertus": {"model_type": "apertus", **_LLAMA},
    "gpt2": {
        "model_type": "gpt2", "vocab_size": 503, "n_embd": 96, "n_layer": 2, "n_head": 6, "n_positions": 256,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    },
    "gpt_neox": {"model_type": "gpt_neox", **_WIDTHS, "intermediate_size": 352, "max_position_embeddings": 256},
    "falcon": {"model_type": "falcon", **_WIDTHS, "multi_query": True, "parallel_attn": True, "bias": False},
    "deepseek_v3": {
        "model_type": "deepseek_v3", **_WIDTHS, "num_key_value_heads": 6, "intermediate_size": 352,
        "moe_intermediate_size": 80, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "n_group": 2, "topk_group": 1, "kv_lora_rank": 40, "q_lora_rank": 56, "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16, "v_head_dim": 16, "first_k_dense_replace": 1, "max_position_embeddings": 256,
    },
}  # fmt: skip

#: Measured in fp32 alone. On the CPU, layer norm keeps its statistics in the dtype of its input (fp32 on a GPU), and
#: Cohere's norm keeps an fp32 copy of its weight, which the engine counts as `working`.
FP32_ONLY = frozenset({"gpt2", "gpt_neox", "falcon", "cohere"})
