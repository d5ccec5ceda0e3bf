"""What a recommendation promises: the true minimum, the best layout on it, and why not fewer."""

import random
from dataclasses import replace

import pytest

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.question import Question
from service.engine.recommend import best, closest, holds, next_smaller, recommend
from service.engine.run import Recompute, Run
from service.engine.search import space
from service.engine.search.choices import alternatives
from service.engine.search.minimum import fits_anywhere, minimum
from service.engine.stacks import STACKS, RecipeRequest
from service.engine.step_time import of_plan
from tests.support.layout_search import MOST_GPUS, random_question, truth

H100 = Gpu(
    id="h100-sxm5-80gb", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, architecture="Hopper",
    compute_capability="9.0", dense_tflops={"bf16": 989.5, "fp8": 1979}, memory_gb_s=3350, interconnect_gb_s=900,
)  # fmt: skip
LLAMA_70B = Architecture(
    layers=80, hidden_size=8192, heads=64, kv_heads=8, head_dim=128, ffn_size=28_672, vocab_size=128_256,
    max_positions=131_072,
)  # fmt: skip
LLAMA_8B = replace(LLAMA_70B, layers=32, hidden_size=4096, heads=32, ffn_size=14_336)


def question(architecture: Architecture = LLAMA_70B, stack: str = "reference", **changes: object) -> Question:
    chosen = STACKS[stack]
    run = Run(sequence_length=8192, loss=chosen.loss, kernels=chosen.kernels, fsdp_version=chosen.fsdp_version)
    asked = Question(architecture=architecture, stack=chosen, gpu=H100, recipe=RecipeRequest(), run=run)
    return replace(asked, **changes)


@pytest.mark.parametrize("seed", range(8))
def test_the_minimum_is_the_true_one_and_no_layout_on_it_is_faster(seed: int) -> None:
    asked = random_question(random.Random(seed))
    expected, found = truth(asked), recommend(asked)
    if expected.minimum_gpus is None:
        assert found is None or found.minimum_gpus > MOST_GPUS
        return
    assert found is not None
    assert found.minimum_gpus == found.plan.gpus == expected.minimum_gpus
    assert found.plan.size().fits
    timed = of_plan(found.plan)
    assert timed is not None
    assert float(timed.seconds_per_token[0]) <= expected.seconds_per_token * (1 + 1e-9)


def test_seventy_billion_parameters_need_two_nodes_of_h100() -> None:
    """16 B × 70.55e9 parameters are 1,129 GB; fourteen 80 GB cards hold no more than 1,120 GB, so 16 it must be."""
    found = recommend(question())
    assert found is not None
    assert found.minimum_gpus == found.plan.gpus == 16


def test_why_not_fewer_names_the_tightest_layout_of_the_next_smaller_count() -> None:
    missing = next_smaller(question(), 16)
    assert missing is not None
    assert missing.gpus == missing.plan.gpus == 8
    assert missing.missing_bytes == -missing.plan.size().headroom_bytes > 0
    assert missing.term == "optimizer_moments"


def test_what_fits_on_one_gpu_needs_no_reason_against_fewer() -> None:
    small = replace(LLAMA_8B, layers=4)
    found = recommend(question(small))
    assert found is not None
    assert found.minimum_gpus == 1
    assert next_smaller(question(small), 1) is None


def test_counts_are_powers_of_two_inside_a_node_and_whole_nodes_beyond() -> None:
    assert space.counts(H100).tolist()[:7] == [1, 2, 4, 8, 16, 24, 32]
    assert space.counts(H100).tolist()[-1] == 4096
    assert space.counts(replace(H100, gpus_per_node=4)).tolist()[:5] == [1, 2, 4, 8, 12]


def test_fixed_keys_bind_the_search() -> None:
    found = recommend(question(tp=4, recompute=Recompute(kind="none"), shard="optimizer"))
    assert found is not None
    layout, run = found.plan.layout, found.plan.run
    assert (layout.tp, run.recompute.kind) == (4, "none")
    assert layout.shard in ("optimizer", "none")


def test_only_counts_that_the_global_batch_can_be_split_over_are_considered() -> None:
    found = recommend(question(global_batch=24, micro_batch=1))
    assert found is not None
    assert 24 % int(found.plan.layout.dp) == 0


@pytest.mark.parametrize("gpus", [7, 13, 1009])
def test_a_prime_number_of_gpus_is_all_data_parallel(gpus: int) -> None:
    found = best(question(LLAMA_8B), gpus)
    assert found is not None
    assert (found.plan.layout.dp, found.plan.gpus) == (gpus, gpus)


def test_ten_million_gpus_are_laid_out_like_any_other_number() -> None:
    found = best(question(), 10_000_000)
    assert found is not None
    assert found.plan.gpus == 10_000_000
    assert found.plan.size().fits


def test_a_count_that_does_not_hold_the_run_has_a_closest_layout() -> None:
    asked = question()
    assert best(asked, 8) is None
    assert not holds(asked, 8)
    made = closest(asked, 8)
    assert made is not None
    assert not made.size().fits


def test_a_run_that_no_count_holds_is_said_so() -> None:
    asked = question(replace(LLAMA_70B, max_positions=1 << 26), micro_batch=64)
    asked = replace(asked, run=replace(asked.run, sequence_length=1 << 20))
    assert recommend(asked) is None
    assert minimum(asked) is None
    assert not fits_anywhere(asked)
    assert fits_anywhere(question())


@pytest.mark.parametrize("goal", ["time", "cost"])
def test_goals_look_at_every_count(goal: str) -> None:
    asked = question(LLAMA_8B, global_batch=1024)
    found = recommend(asked, goal)  # type: ignore[arg-type]
    assert found is not None
    timed = of_plan(found.plan)
    assert timed is not None
    scale = found.plan.gpus if goal == "cost" else 1
    value = float(timed.seconds_per_token[0]) * scale
    for gpus in (2, 8, 16, 24, 64, 512, 1024, 4096):
        other = best(asked, gpus)
        if other is not None:
            seconds = of_plan(other.plan)
            assert seconds is not None
            assert value <= float(seconds.seconds_per_token[0]) * (gpus if goal == "cost" else 1) * (1 + 1e-9)


def test_without_a_known_speed_the_least_recompute_then_the_most_room_leads() -> None:
    asked = question(LLAMA_8B, gpu=replace(H100, dense_tflops={}))
    found = best(asked, 8)
    assert found is not None
    assert of_plan(found.plan) is None
    assert found.plan.run.recompute.kind == "none"
    same = replace(asked, recompute=Recompute(kind="none"))
    others = [best(replace(same, tp=tp), 8) for tp in (1, 2, 4, 8)]
    room = [other.plan.size().headroom_bytes for other in others if other is not None]
    assert found.plan.size().headroom_bytes == max(room)


def test_alternatives_fit_differ_and_each_wins_something() -> None:
    found = recommend(question())
    assert found is not None
    others = alternatives(found.fit, found.minimum_gpus)
    assert 2 <= len(others) <= 5
    mine = found.plan.size()
    for other in others:
        sizing, timed, own = other.plan.size(), of_plan(other.plan), of_plan(found.plan)
        assert timed is not None and own is not None
        assert sizing.fits
        assert other.lever
        faster = timed.seconds_per_token[0] < own.seconds_per_token[0]
        assert faster or sizing.headroom_bytes > mine.headroom_bytes
    assert len({(one.plan.gpus, one.plan.layout, one.plan.run.recompute) for one in others}) == len(others)
