"""Parameter counts against published figures and hand calculations, and what the groups say about themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engine.architecture import Architecture, LatentAttention, MixtureOfExperts, layer_kinds
from service.engine.parameters import active_count, count, parameter_groups

LLAMA_70B = Architecture(
    layers=80,
    hidden_size=8192,
    heads=64,
    kv_heads=8,
    head_dim=128,
    ffn_size=28672,
    vocab_size=128256,
    max_positions=131072,
)
GPT2 = Architecture(
    layers=12,
    hidden_size=768,
    heads=12,
    kv_heads=12,
    head_dim=64,
    ffn_size=3072,
    vocab_size=50257,
    max_positions=1024,
    tied_embeddings=True,
    position="learned",
    norm="layernorm",
    activation="gelu",
    attention_bias=True,
    attention_out_bias=True,
    mlp_bias=True,
)
DEEPSEEK_V3 = Architecture(
    layers=61,
    hidden_size=7168,
    heads=128,
    kv_heads=128,
    head_dim=192,
    ffn_size=18432,
    vocab_size=129280,
    max_positions=163840,
    moe=MixtureOfExperts(
        experts=256, top_k=8, ffn_size=2048, shared_experts=1, shared_ffn_size=2048, first_dense_layers=3
    ),
    mla=LatentAttention(q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128),
)
COURSE = Architecture(
    layers=6,
    hidden_size=256,
    heads=4,
    kv_heads=4,
    head_dim=64,
    ffn_size=1024,
    vocab_size=4096,
    max_positions=256,
    tied_embeddings=True,
    position="learned",
    norm="layernorm-no-bias",
    activation="gelu",
)


@pytest.mark.parametrize(
    ("architecture", "published"),
    [
        pytest.param(LLAMA_70B, 70_553_706_496, id="Llama 3.1 70B"),
        pytest.param(GPT2, 124_439_808, id="GPT-2"),
        pytest.param(DEEPSEEK_V3, 671_026_404_352, id="DeepSeek-V3"),
        pytest.param(COURSE, 5_836_032, id="the course's model"),
    ],
)
def test_counts_are_the_published_ones(architecture: Architecture, published: int) -> None:
    assert count(architecture) == published


def test_norm_biases_are_what_the_course_model_leaves_out() -> None:
    """13 norms of 256: six layers of two and the final one."""
    assert count(replace(COURSE, norm="layernorm")) == 5_836_032 + 13 * 256


def test_one_token_of_deepseek_v3_meets_37_and_a_half_billion() -> None:
    assert active_count(DEEPSEEK_V3) == 37_552_282_624


def test_groups_of_a_llama_layer_are_its_nine_tensors() -> None:
    (kind,) = layer_kinds(LLAMA_70B)
    layer = {group.name: group.shape for group in parameter_groups(LLAMA_70B).layers[kind]}
    assert layer == {
        "input_layernorm.weight": (8192,),
        "post_attention_layernorm.weight": (8192,),
        "self_attn.q_proj.weight": (8192, 8192),
        "self_attn.k_proj.weight": (1024, 8192),
        "self_attn.v_proj.weight": (1024, 8192),
        "self_attn.o_proj.weight": (8192, 8192),
        "mlp.gate_proj.weight": (28672, 8192),
        "mlp.up_proj.weight": (28672, 8192),
        "mlp.down_proj.weight": (8192, 28672),
    }


def test_what_may_shard_a_group() -> None:
    """Column-split linears split their bias, row-split ones keep it whole; norms and routers are on every rank."""
    biased = replace(LLAMA_70B, attention_bias=True, attention_out_bias=True, mlp_bias=True)
    (kind,) = layer_kinds(biased)
    shards = {group.name: group.shards for group in parameter_groups(biased).layers[kind]}
    assert shards["self_attn.q_proj.bias"] == "tp"
    assert shards["self_attn.k_proj.weight"] == shards["self_attn.v_proj.bias"] == "tp_kv"
    assert shards["self_attn.o_proj.weight"] == shards["mlp.down_proj.weight"] == "tp"
    assert shards["self_attn.o_proj.bias"] == shards["mlp.down_proj.bias"] == shards["input_layernorm.weight"] == ""
    routed = layer_kinds(DEEPSEEK_V3)[1]
    experts = {group.name: group for group in parameter_groups(DEEPSEEK_V3).layers[routed]}
    assert experts["mlp.router.weight"].shards == ""
    assert experts["mlp.experts.down_proj.weight"].shards == "ep"
    assert experts["mlp.experts.down_proj.weight"].copies == 256
    assert experts["self_attn.kv_a_proj_with_mqa.weight"].shards == ""


def test_rows_add_up_to_the_count() -> None:
    for architecture in (LLAMA_70B, GPT2, DEEPSEEK_V3, COURSE):
        rows = parameter_groups(architecture).rows()
        assert sum(group.count * times for group, times in rows) == count(architecture)


def test_a_tied_head_is_counted_once() -> None:
    untied = replace(GPT2, tied_embeddings=False)
    assert count(untied) - count(GPT2) == 50257 * 768
    assert parameter_groups(GPT2).head == ()


def test_a_classifier_has_no_vocabulary_head() -> None:
    assert count(replace(LLAMA_70B, head="classification")) == 70_553_706_496 - 128256 * 8192


def test_a_multi_token_prediction_module_is_a_layer_with_two_norms_a_projection_and_a_final_norm() -> None:
    """DeepSeek-V3's hub total has about as much more (and its own copies of embedding and head)."""
    hidden = 7168
    attention = 1536 * hidden + 1536 + 128 * 192 * 1536 + 576 * hidden + 512 + 128 * 256 * 512 + hidden * 128 * 128
    experts = 256 * hidden + (256 + 1) * 3 * hidden * 2048
    by_hand = attention + experts + 2 * hidden + 3 * hidden + 2 * hidden * hidden
    assert by_hand == 11_610_067_968
    assert count(replace(DEEPSEEK_V3, mtp_layers=1)) - count(DEEPSEEK_V3) == by_hand


def test_named_totals_are_added_as_they_are() -> None:
    tower = replace(LLAMA_70B, extra_parameters=(("vision tower", 12_345),))
    assert count(tower) == 70_553_706_496 + 12_345
    assert active_count(tower) == 70_553_706_496


def test_fused_projections_hold_the_same_parameters_in_fewer_tensors() -> None:
    fused = replace(LLAMA_70B, fused_qkv=True, fused_gate_up=True)
    (kind,) = layer_kinds(fused)
    assert count(fused) == count(LLAMA_70B)
    assert len(parameter_groups(fused).layers[kind]) == len(parameter_groups(LLAMA_70B).layers[kind]) - 3
