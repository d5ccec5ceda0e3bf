"""Layouts: what divides what, and which combinations are refused with the rule they break."""

from __future__ import annotations

import pytest

from service.engine.advice import unwise
from service.engine.architecture import Architecture, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.layout import Layout, impossible, impossible_sequence
from service.engine.run import Run

H100 = Gpu(id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768)
LLAMA_70B = Architecture(
    layers=80, hidden_size=8192, heads=64, kv_heads=8, head_dim=128, ffn_size=28672, vocab_size=128256,
    max_positions=131072,
)  # fmt: skip
MIXTRAL = Architecture(
    layers=32, hidden_size=4096, heads=32, kv_heads=8, head_dim=128, ffn_size=None, vocab_size=32000,
    max_positions=32768, moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=14336),
)  # fmt: skip


def refused(architecture: Architecture, layout: Layout) -> dict[str, tuple[str, ...]]:
    return {error.pointer: error.suggestions for error in impossible(architecture, layout)}


def test_gpus_are_the_product_of_all_degrees_but_those_that_share_ranks() -> None:
    assert Layout(tp=8, pp=4, cp=2, dp=3, ep=4).gpus == 8 * 4 * 2 * 3


def test_the_group_that_shards_dense_parameters_is_dp_times_cp() -> None:
    assert Layout(tp=4, cp=2, dp=8, shard="optimizer").shard_ranks("optimizer") == 16


def test_experts_are_sharded_over_what_expert_parallelism_left_of_the_ranks() -> None:
    # dp·cp·tp / (ep·etp) = 8·1·4 / (8·1)
    assert Layout(tp=4, dp=8, ep=8, shard="optimizer").shard_ranks("optimizer", expert=True) == 4


def test_a_state_below_its_level_of_sharding_is_whole() -> None:
    assert Layout(dp=8, shard="optimizer").shard_ranks("gradients") == 1


def test_tp_3_with_64_heads_is_refused_with_2_and_4() -> None:
    assert refused(LLAMA_70B, Layout(tp=3))["/tp"] == ("2", "4")


def test_pp_above_the_layers_is_refused() -> None:
    assert "/pp" in refused(LLAMA_70B, Layout(pp=81))


def test_stage_layers_must_sum_to_the_layers() -> None:
    assert "/stage_layers" in refused(LLAMA_70B, Layout(pp=2, stage_layers=(40, 39)))


def test_experts_must_divide_evenly_over_ep() -> None:
    assert refused(MIXTRAL, Layout(ep=3, dp=3))["/ep"] == ("2", "4")


def test_expert_parallelism_of_a_dense_model_is_refused() -> None:
    assert refused(LLAMA_70B, Layout(ep=2, dp=2)) == {"/ep": ("1",)}


def test_a_shard_degree_must_divide_the_data_parallel_ranks() -> None:
    assert refused(LLAMA_70B, Layout(dp=8, shard="parameters", shard_degree=3)) == {"/shard_degree": ("2", "4")}


def test_a_sequence_must_be_cut_into_equal_parts() -> None:
    assert [error.suggestions for error in impossible_sequence(Layout(cp=3), 8192)] == [("2", "4")]
    assert list(impossible_sequence(Layout(cp=4), 8192)) == []


@pytest.mark.parametrize(
    ("architecture", "layout", "run", "codes"),
    [
        (LLAMA_70B, Layout(tp=16), {}, ["tensor_parallel_across_nodes"]),
        (LLAMA_70B, Layout(pp=8), {"micro_batches": 4}, ["pipeline_not_filled"]),
        (LLAMA_70B, Layout(pp=4, vpp=2), {"micro_batches": 6}, ["interleaving_without_micro_batches"]),
        (LLAMA_70B, Layout(pp=4, vpp=2), {"micro_batches": 8}, []),
        (MIXTRAL, Layout(tp=8, ep=8), {}, ["expert_parallel_above_data_parallel"]),
        (MIXTRAL, Layout(dp=8, ep=8), {}, []),
    ],
)
def test_layouts_that_run_but_are_unwise_are_named(
    architecture: Architecture, layout: Layout, run: dict[str, int], codes: list[str]
) -> None:
    made = Run(sequence_length=4096, **run)  # type: ignore[arg-type]
    assert [code for code, _ in unwise(architecture, layout, made, H100)] == codes
