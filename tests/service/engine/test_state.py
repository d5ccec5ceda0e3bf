"""Bytes of state on one rank: recipe × sharding × offloading, checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import STATE_TERMS
from service.engine.run import Run
from service.engine.size import Sizing, size
from service.engine.stacks import STACKS, RecipeRequest, recipe

A100 = Gpu(id="a", name="A100", vendor="NVIDIA", memory_bytes=85_899_345_920, compute_capability="8.0")
#: no vocabulary padding, no norms of odd size: 8 layers of 4·64² + 3·64·256 + 2·64, a table of 1024·64 twice, a norm
TINY = Architecture(
    layers=8, hidden_size=64, heads=4, kv_heads=4, head_dim=16, ffn_size=256, vocab_size=1024, max_positions=128,
)  # fmt: skip
PARAMETERS = 8 * (4 * 64 * 64 + 3 * 64 * 256 + 2 * 64) + 2 * 1024 * 64 + 64


def sized(stack: str, layout: Layout, run: dict[str, object] | None = None, **asked: object) -> Sizing:
    made = recipe(STACKS[stack], RecipeRequest(**asked), sharded=layout.shard == "parameters")  # type: ignore[arg-type]
    return size(TINY, made, layout, Run(sequence_length=128, **(run or {})), STACKS[stack], A100)  # type: ignore[arg-type]


def state_bytes(sizing: Sizing) -> dict[str, int]:
    last = sizing.peak.line.at(-1)
    return {term: int(last[term]) for term in STATE_TERMS}


def test_the_whole_model_is_counted_once() -> None:
    assert sized("reference", Layout()).parameters == PARAMETERS


@pytest.mark.parametrize(
    ("stack", "shard", "per_parameter"),
    [
        # weights and gradients whole, masters and moments over 8 ranks
        ("megatron", "optimizer", (2, 4, 4 / 8, 8 / 8)),
        ("deepspeed", "gradients", (2, 2 / 8, 4 / 8, 8 / 8)),
        ("torchtitan", "parameters", (4 / 8, 4 / 8, 0, 8 / 8)),
        ("reference", "none", (2, 2, 4, 8)),
    ],
)
def test_each_level_of_sharding_divides_its_states(stack: str, shard: str, per_parameter: tuple[float, ...]) -> None:
    multiple = {"run": {"vocab_multiple": 1}} if stack == "megatron" else {}
    found = state_bytes(sized(stack, Layout(dp=8, shard=shard), **multiple))  # type: ignore[arg-type]
    for size_, each in zip(found.values(), per_parameter, strict=True):
        # every tensor class is rounded up to whole ranks
        assert size_ == pytest.approx(each * PARAMETERS, rel=2e-3)


def test_ranks_beyond_the_key_value_heads_hold_copies_of_them_in_a_joint_projection_too() -> None:
    joint = replace(TINY, kv_heads=1, fused_qkv=True)
    made = recipe(STACKS["reference"], RecipeRequest(), sharded=False)
    found = size(joint, made, Layout(tp=4), Run(sequence_length=128), STACKS["reference"], A100)
    # a rank of 4: one query, one key and one value head (16 wide each), its quarter of the rest, whole norms
    layer = 3 * 16 * 64 + 16 * 64 + 3 * 64 * 256 // 4 + 2 * 64
    assert state_bytes(found)["weights"] == 2 * (8 * layer + 2 * 1024 * 64 // 4 + 64)


def test_hybrid_sharding_divides_by_its_own_degree() -> None:
    whole = state_bytes(sized("torchtitan", Layout(dp=8, shard="parameters")))
    hybrid = state_bytes(sized("torchtitan", Layout(dp=8, shard="parameters", shard_degree=2)))
    assert hybrid["weights"] == pytest.approx(4 * whole["weights"], rel=2e-3)


def test_fp16_megatron_keeps_a_second_gradient_in_fp32() -> None:
    found = state_bytes(sized("megatron", Layout(), precision="fp16-mixed", gradient_dtype="fp16"))
    assert found["gradients"] == 6 * PARAMETERS


def test_deepspeed_accumulates_in_fp32_beside_its_16_bit_gradients() -> None:
    found = state_bytes(sized("deepspeed", Layout(), gradient_dtype="fp32"))
    assert found["gradients"] == 6 * PARAMETERS


def test_an_offloaded_optimizer_is_on_the_host_and_nowhere_else() -> None:
    layout = Layout(dp=8, shard="optimizer")
    run = {"vocab_multiple": 1, "offload": frozenset({"optimizer"})}
    here, there = sized("megatron", layout, {"vocab_multiple": 1}), sized("megatron", layout, run)
    found, before = state_bytes(there), state_bytes(here)
    assert found["master_weights"] == found["optimizer_moments"] == 0
    assert found["gradients"] == before["gradients"]
    assert there.peak.host_bytes == before["master_weights"] + before["optimizer_moments"]


def test_part_of_the_moments_can_leave() -> None:
    run = {"offload": frozenset({"moments"}), "offload_fraction": 0.75}
    whole, part = sized("reference", Layout()), sized("reference", Layout(), run)
    moments = state_bytes(whole)["optimizer_moments"]
    assert state_bytes(part)["optimizer_moments"] + part.peak.host_bytes == moments
    assert part.peak.host_bytes == pytest.approx(0.75 * moments, rel=1e-3)


def test_zero_offload_takes_the_gradients_along() -> None:
    run = {"offload": frozenset({"optimizer"})}
    found = state_bytes(sized("deepspeed", Layout(dp=8, shard="parameters"), run))
    assert found["gradients"] == 0
    assert found["weights"] > 0


def test_paged_optimizers_keep_their_moments_on_the_host() -> None:
    sizing = sized("huggingface", Layout(), precision="bf16", optimizer="paged-adamw")
    assert state_bytes(sizing)["optimizer_moments"] == 0
    assert sizing.peak.host_bytes == 4 * PARAMETERS


def test_the_optimizer_in_backward_leaves_no_gradients_for_the_step() -> None:
    sizing = sized("huggingface", Layout(), {"optimizer_impl": "in-backward"}, precision="bf16")
    assert state_bytes(sizing)["gradients"] == 0
