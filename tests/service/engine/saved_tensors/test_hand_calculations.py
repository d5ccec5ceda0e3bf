"""Bytes that one layer keeps, written out by hand from the modelling code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engine.architecture import Architecture, LatentAttention, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Recompute, Run
from service.engine.size import StageSizing, size
from service.engine.stacks import STACKS, RecipeRequest, recipe

CARD = Gpu(id="any", name="any", vendor="NVIDIA", memory_bytes=1 << 45)
LLAMA_3_8B = Architecture(
    layers=32, hidden_size=4096, heads=32, kv_heads=8, head_dim=128, ffn_size=14336, vocab_size=128256,
    max_positions=8192, code="llama",
)  # fmt: skip
GPT_2 = Architecture(
    layers=12, hidden_size=768, heads=12, kv_heads=12, head_dim=64, ffn_size=3072, vocab_size=50257,
    max_positions=1024, tied_embeddings=True, position="learned", norm="layernorm", activation="gelu",
    activation_function="gelu_new", attention_bias=True, attention_out_bias=True, mlp_bias=True, dropout=0.1,
    attention_dropout=0.1, fused_qkv=True, code="gpt2",
)  # fmt: skip
B, S = 2, 512


def stage(
    shape: Architecture, *, attention: str = "sdpa", precision: str = "bf16", recompute: str = "none", batch: int = B
) -> StageSizing:
    stack = STACKS["huggingface"]
    run = Run(
        sequence_length=S,
        micro_batch=batch,
        attention=attention,  # type: ignore[arg-type]
        recompute=Recompute(kind=recompute),  # type: ignore[arg-type]
        optimizer_impl="foreach",
    )
    made = recipe(stack, RecipeRequest(precision=precision), sharded=False)
    return size(shape, made, Layout(), run, stack, CARD).stages[0]


def per_layer(shape: Architecture, **how: object) -> int:
    """What one more layer saves."""
    more, fewer = replace(shape, layers=3), replace(shape, layers=2)
    return stage(more, **how).saved_bytes - stage(fewer, **how).saved_bytes  # type: ignore[arg-type]


def test_a_llama_layer_under_flash_attention() -> None:
    h, f, q, kv, a = 4096, 14336, 4096, 1024, 32
    norms = 2 * (4 * h + 2 * h + 2 * h + 4)  # fp32 copy, normalised, output, 1/rms
    attention = 2 * q + 2 * kv + 2 * kv + 2 * q + 4 * a  # q, k, v, output, log-sum-exp
    mlp = 4 * 2 * f  # gate, silu(gate), up, their product
    assert per_layer(LLAMA_3_8B) == B * S * (norms + attention + mlp) + 16 + 8


def test_a_llama_layer_under_eager_attention_keeps_scores_twice_and_repeats_its_heads() -> None:
    h, f, q, a = 4096, 14336, 4096, 32
    norms = 2 * (8 * h + 4)
    attention = 4 * 2 * q  # q, k and v for every query head, output
    scores = B * S * S * a * (4 + 2)  # softmax in fp32 and its cast
    assert per_layer(LLAMA_3_8B, attention="eager") == B * S * (norms + attention + 8 * f) + scores


def test_autocast_casts_the_input_of_every_linear_for_itself() -> None:
    h, f, q, kv, a = 4096, 14336, 4096, 1024, 32
    norms = 2 * (4 * h + 4 * h + 4)  # fp32 residual stream, normalised
    inputs = 5 * 2 * h  # q, k, v, gate, up
    attention = 2 * q + 2 * kv + 2 * kv + 2 * q + 4 * a
    assert per_layer(LLAMA_3_8B, precision="amp") == B * S * (norms + inputs + attention + 8 * f) + 24


def test_a_checkpointed_layer_keeps_its_input() -> None:
    assert per_layer(LLAMA_3_8B, recompute="full") == B * S * 2 * 4096


def test_a_gpt_2_layer_keeps_five_tensors_of_its_mlp() -> None:
    h, f, a = 768, 3072, 12
    norms = 2 * (2 * h + 2 * h + 8)  # input, output, mean and 1/σ
    attention = 3 * 2 * h + 2 * h + 4 * a + h  # joined q, k, v; output; log-sum-exp; dropout mask
    mlp = 5 * 2 * f + h  # up, half, tanh, 1 + tanh, product; dropout mask
    assert per_layer(GPT_2) == B * S * (norms + attention + mlp) + 24


def test_the_loss_keeps_the_log_softmax_in_fp32() -> None:
    h, v = 4096, 128256
    fixed = B * S * (4 * v + 8 * h + 4 + 8) + 2 * 2 * S * 128 + 4  # log-softmax; final norm; labels; cos and sin
    assert stage(LLAMA_3_8B).saved_bytes - 32 * per_layer(LLAMA_3_8B) == fixed


def test_a_mixtral_layer_keeps_k_rows_a_token() -> None:
    shape = Architecture(
        layers=2, hidden_size=1024, heads=8, kv_heads=2, head_dim=128, ffn_size=None, vocab_size=4096,
        max_positions=8192, code="mixtral", moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=3584),
    )  # fmt: skip
    h, q, kv, a, e, k, m = 1024, 1024, 256, 8, 8, 2, 3584
    attention = 2 * (8 * h + 4) + 4 * q + 4 * kv + 4 * a
    router = 4 * e + 8 * k + 4 * k + 4  # probabilities; chosen experts; their weights before division; the sum
    rows = k * (2 * h + 8 * m + 2 * h + 4)  # sorted rows; gate and up, activated, product; outputs; weights
    places = 3 * 8 * k  # order, token of each row, way back
    assert per_layer(shape) == B * S * (attention + router + rows + places) + 4 * e + 24


def test_latent_attention_keeps_the_joined_keys_and_values() -> None:
    shape = Architecture(
        layers=2, hidden_size=1024, heads=8, kv_heads=8, head_dim=192, ffn_size=2048, vocab_size=4096,
        max_positions=8192, code="deepseek_v3",
        mla=LatentAttention(kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
                            q_lora_rank=768),
    )  # fmt: skip
    h, f, a, qk, vd, kvb, cr, qr = 1024, 2048, 8, 192, 128, 256, 512, 768
    norms = 2 * (8 * h + 4) + (8 * qr + 4) + (8 * cr + 4)
    attention = 2 * a * qk + 2 * a * qk + 2 * a * kvb + 2 * a * vd + 4 * a  # q, k; k_nope and v; output; log-sum-exp
    assert per_layer(shape) == B * S * (norms + attention + 8 * f) + 16


@pytest.mark.parametrize(("batch", "megabytes"), [(8, 290.3), (32, 1159), (128, 4635)])
def test_the_course_model(batch: int, megabytes: float) -> None:
    """nanoGPT's shape in fp32 with eager attention: the figures of the course within 1 %."""
    shape = Architecture(
        layers=6, hidden_size=256, heads=4, kv_heads=4, head_dim=64, ffn_size=1024, vocab_size=4096,
        max_positions=256, tied_embeddings=True, position="learned", norm="layernorm-no-bias", activation="gelu",
    )  # fmt: skip
    stack = STACKS["reference"]
    run = Run(sequence_length=256, micro_batch=batch, attention="eager")
    made = recipe(stack, RecipeRequest(precision="fp32"), sharded=False)
    told = size(shape, made, Layout(), run, stack, CARD).stages[0].saved_bytes
    assert told == pytest.approx(megabytes * 1e6, rel=0.01)
