"""Levers: sized by the engine, honest about what they touch, the most useful first."""

from dataclasses import replace
from typing import Any

import pytest

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.levers import WORTH_BYTES, Lever, levers, past_the_floor
from service.engine.question import Plan, Question, plan
from service.engine.run import Recompute, Run
from service.engine.size import usable_bytes
from service.engine.stacks import STACKS, RecipeRequest

H100 = Gpu(
    id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, architecture="Hopper",
    compute_capability="9.0", dense_tflops={"bf16": 989.5}, memory_gb_s=3350, interconnect_gb_s=900,
)  # fmt: skip
LLAMA_8B = Architecture(
    layers=32, hidden_size=4096, heads=32, kv_heads=8, head_dim=128, ffn_size=14_336, vocab_size=128_256,
    max_positions=131_072,
)  # fmt: skip


def laid_out(stack: str = "reference", run: Run | None = None, **changes: Any) -> Plan:
    question = Question(
        architecture=LLAMA_8B, stack=STACKS[stack], gpu=H100, recipe=RecipeRequest(),
        run=run or Run(sequence_length=8192, loss=STACKS[stack].loss, kernels=STACKS[stack].kernels),
    )  # fmt: skip
    degrees = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "shard": STACKS[stack].shards[-1], "micro_batch": 2}
    return plan(question, **({"recompute": Recompute()} | degrees | changes))


def by_word(made: Plan) -> dict[str, Lever]:
    return {lever.word: lever for lever in levers(made)}


@pytest.mark.parametrize("stack", ["reference", "torchtitan", "megatron", "deepspeed", "huggingface"])
def test_a_lever_saves_what_sizing_its_plan_says(stack: str) -> None:
    made = laid_out(stack)
    now = made.size()
    found = levers(made)
    assert found
    for lever in found:
        then = lever.plan.size()
        assert lever.saves_bytes_per_gpu == now.needed_bytes - then.needed_bytes > 0
        assert lever.needed_bytes == then.needed_bytes


def test_what_each_lever_touches() -> None:
    found = by_word(laid_out(shard="optimizer", tp=2))
    touches = {word: lever.touches for word, lever in found.items()}
    assert touches["micro_batch=1"] == "activations"
    assert touches["recompute=full"] == "activations"
    assert touches["cp=2"] == "activations"
    assert touches["shard=parameters"] == "state"
    assert touches["optimizer=adamw-8bit"] == "state"
    assert touches["gpus=32"] == "state"
    assert touches["tp=4"] == "state and activations"


def test_doubling_the_micro_batch_back_is_what_halving_it_saved() -> None:
    """One of the two laws: activations are proportional to the micro-batch, state is not touched."""
    lever = by_word(laid_out())["micro_batch=1"]
    assert lever.change == {"micro_batch": 1}
    before, after = laid_out().size().peak.saved_bytes, lever.plan.size().peak.saved_bytes
    assert before == 2 * after


def test_recomputing_everything_costs_about_a_third_more_time() -> None:
    lever = by_word(laid_out())["recompute=full"]
    assert lever.slower is not None
    assert 1.2 < lever.slower < 1.4
    assert "% more time per token" in lever.costs


def test_what_does_not_matter_comes_last_and_cheap_comes_first() -> None:
    found = levers(laid_out())
    matters = [lever.saves_bytes_per_gpu >= WORTH_BYTES for lever in found]
    assert matters == sorted(matters, reverse=True)
    efforts = [lever.effort for lever in found if lever.saves_bytes_per_gpu >= WORTH_BYTES]
    usable = usable_bytes(H100, 0.05)
    if laid_out().size().fits:
        assert efforts == sorted(efforts)
    else:
        enough = [lever.needed_bytes <= usable for lever in found if lever.saves_bytes_per_gpu >= WORTH_BYTES]
        assert enough == sorted(enough, reverse=True)


def test_a_run_that_does_not_fit_is_first_shown_what_alone_makes_it_fit() -> None:
    made = laid_out(dp=1, micro_batch=1, recompute=Recompute(kind="full"))
    assert not made.size().fits
    found = levers(made)
    enough = [lever.needed_bytes <= usable_bytes(H100, 0.05) for lever in found]
    first_too_little = enough.index(False)
    assert any(enough)
    assert not any(enough[first_too_little:]) or found[first_too_little].saves_bytes_per_gpu < WORTH_BYTES


def test_a_layout_lever_says_its_whole_layout() -> None:
    made = laid_out(recompute=Recompute(kind="full"), tp=2)
    change = by_word(made)["tp=4"].change
    assert change == {
        "tp": 4, "pp": 1, "cp": 1, "ep": 1, "dp": 4, "gpus": 16, "shard": "parameters", "recompute": "full",
    }  # fmt: skip


def test_stacks_are_not_offered_what_they_cannot_do() -> None:
    words = by_word(laid_out("huggingface", shard="parameters"))
    assert not any(word.startswith(("tp=", "pp=", "recompute=selective")) for word in words)


def test_eager_attention_is_told_of_flash_first() -> None:
    run = Run(sequence_length=4096, attention="eager")
    assert levers(laid_out(run=run, micro_batch=1))[0].word == "attention=flash"


def test_the_next_lever_past_the_floor_lowers_what_sharding_cannot() -> None:
    made = laid_out(micro_batch=4)
    found = levers(made)
    word = past_the_floor(made, found)
    lever = next(lever for lever in found if lever.word == word)
    assert lever.touches != "state"


def test_without_a_known_speed_costs_are_words_only() -> None:
    made = laid_out()
    blind = replace(made, question=replace(made.question, gpu=replace(H100, dense_tflops={})))
    assert all("per token" not in lever.costs for lever in levers(blind))
