"""Micro-batches in flight, worked out by hand for each schedule."""

from __future__ import annotations

import pytest

from service.engine import pipeline
from service.engine.architecture import Architecture, layer_kinds
from service.engine.layout import Layout
from service.engine.run import Run

DEEP = Architecture(
    layers=80, hidden_size=64, heads=8, kv_heads=8, head_dim=8, ffn_size=256, vocab_size=512, max_positions=128
)


def held(layout: Layout, stage: int, chunk: int = 0, **run: object) -> int:
    asked = {"sequence_length": 128, "micro_batches": 64, **run}
    return int(pipeline.in_flight(layout, Run(**asked), stage, chunk))  # type: ignore[arg-type]


@pytest.mark.parametrize(("stage", "expected"), [(0, 8), (3, 5), (7, 1)])
def test_1f1b_holds_as_many_micro_batches_as_stages_follow(stage: int, expected: int) -> None:
    assert held(Layout(pp=8), stage) == expected


def test_1f1b_holds_no_more_than_there_are() -> None:
    assert held(Layout(pp=8), 0, micro_batches=3) == 3


def test_gpipe_holds_all() -> None:
    assert held(Layout(pp=8), 7, pipeline_schedule="gpipe") == 64


def test_interleaving_counts_chunk_forwards_before_the_first_backward() -> None:
    # pp = 4, vpp = 5, last stage: (5 − 1)·4 + 2·0 + 1 = 17 forwards, four micro-batches through chunks 0 to 3, one
    # through chunk 4
    layout = Layout(pp=4, vpp=5)
    assert [held(layout, 3, chunk) for chunk in range(5)] == [4, 4, 4, 4, 1]


def test_the_first_stage_of_an_interleaved_pipeline_starts_a_second_round() -> None:
    # (2 − 1)·4 + 2·3 + 1 = 11 forwards: one round of 4 through both chunks, then 3 more through chunk 0
    layout = Layout(pp=4, vpp=2)
    assert [held(layout, 0, chunk) for chunk in range(2)] == [7, 4]


def test_a_larger_group_keeps_more_micro_batches_in_the_early_chunks() -> None:
    # (2 − 1)·8 + 2·3 + 1 = 15 forwards in groups of 8
    layout = Layout(pp=4, vpp=2)
    assert [held(layout, 0, chunk, microbatch_group=8) for chunk in range(2)] == [8, 7]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [("vocab-parallel-1", 6), ("vocab-parallel-2", 5), ("vocab-parallel-interlaced", 6)],
)
def test_vocabulary_parallel_schedules_hold_more(schedule: str, expected: int) -> None:
    assert held(Layout(pp=8), 4, pipeline_schedule=schedule) == expected


def test_uneven_stages_hold_the_layers_that_are_said() -> None:
    layout = Layout(pp=4, stage_layers=(10, 30, 30, 10))
    (kind,) = layer_kinds(DEEP)
    assert [pipeline.layers_of(DEEP, layout, kind, stage, 0) for stage in range(4)] == [10, 30, 30, 10]


def test_chunk_k_of_an_interleaved_pipeline_lies_on_rank_k_modulo_pp() -> None:
    layout = Layout(pp=2, vpp=2, stage_layers=(19, 20, 20, 21))
    (kind,) = layer_kinds(DEEP)
    chunks = [[pipeline.layers_of(DEEP, layout, kind, stage, chunk) for chunk in range(2)] for stage in range(2)]
    assert chunks == [[19, 20], [20, 21]]
