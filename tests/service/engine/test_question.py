"""From a question to a plan: what is filled in, and what a stack or a model refuses."""

from dataclasses import replace

import pytest

from service.engine.architecture import Architecture, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.question import Plan, Question, plan, refusals
from service.engine.run import Recompute, Run
from service.engine.stacks import STACKS, RecipeRequest

GPU = Gpu(id="gpu", name="GPU", vendor="NVIDIA", memory_bytes=80 << 30)
MODEL = Architecture(
    layers=126, hidden_size=1024, heads=16, kv_heads=8, head_dim=64, ffn_size=4096, vocab_size=1000, max_positions=8192
)


def question(stack: str = "reference", **changes: object) -> Question:
    asked = Question(
        architecture=MODEL, stack=STACKS[stack], gpu=GPU, recipe=RecipeRequest(), run=Run(sequence_length=2048)
    )
    return replace(asked, **changes)


def laid_out(asked: Question, **changes: object) -> Plan:
    degrees = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 1, "shard": "none", "micro_batch": 1}
    return plan(asked, **({"recompute": Recompute()} | degrees | changes))  # type: ignore[arg-type]


def test_without_a_global_batch_there_is_one_micro_batch_or_a_filled_pipeline() -> None:
    assert laid_out(question()).run.micro_batches == 1
    assert laid_out(question(), pp=6).run.micro_batches == 6


def test_a_global_batch_is_dealt_out_over_replicas_and_micro_batches() -> None:
    assert laid_out(question(global_batch=96), dp=8, micro_batch=2).run.micro_batches == 6


def test_one_data_parallel_rank_shards_nothing() -> None:
    assert laid_out(question(), shard="parameters").layout.shard == "none"
    assert laid_out(question(), shard="parameters", cp=2).layout.shard == "parameters"


def test_sequences_are_split_with_tensors_where_the_stack_does_so() -> None:
    assert laid_out(question(), tp=2).layout.sp
    assert not laid_out(question(), tp=1).layout.sp
    assert not laid_out(question("deepspeed"), tp=2).layout.sp
    assert not laid_out(question(sp=False), tp=2).layout.sp


def test_megatron_pads_the_vocabulary_to_128_rows_a_rank() -> None:
    assert laid_out(question("megatron"), tp=4).run.vocab_multiple == 512
    assert laid_out(question("reference"), tp=4).run.vocab_multiple is None


def test_experts_are_split_like_everything_else_unless_asked_otherwise() -> None:
    mixture = replace(MODEL, moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=512))
    assert laid_out(question(architecture=mixture), tp=4).layout.etp == 4
    assert laid_out(question(architecture=mixture, etp=1), tp=4).layout.etp == 1
    assert laid_out(question(), tp=4).layout.etp == 1


def test_layers_that_do_not_divide_are_dealt_out_only_where_that_is_allowed() -> None:
    """126 layers over 8 stages: six of 16 and two of 15, as torchtitan ran Llama 3.1 405B."""
    even = laid_out(question(), pp=8)
    assert [error.pointer for error in refusals(even.question, even.layout)] == ["/pp"]
    uneven = laid_out(question(), pp=8, uneven=True)
    assert uneven.layout.stage_layers == (16,) * 6 + (15,) * 2
    assert not list(refusals(uneven.question, uneven.layout))


@pytest.mark.parametrize(
    ("stack", "layout", "pointers"),
    [
        ("huggingface", {"tp": 2}, ["/tp"]),
        ("huggingface", {"pp": 2}, ["/pp"]),
        ("megatron", {"shard": "parameters", "dp": 2}, ["/shard"]),
        ("deepspeed", {"pp": 2, "dp": 2, "shard": "gradients"}, ["/shard"]),
        ("reference", {"tp": 3}, ["/tp", "/tp"]),
        ("reference", {"ep": 2, "dp": 2}, ["/ep"]),
        ("reference", {"cp": 3}, ["/cp"]),
        ("reference", {"tp": 16}, []),
    ],
)
def test_what_cannot_be_run_is_refused_at_its_key(stack: str, layout: dict[str, object], pointers: list[str]) -> None:
    found = list(refusals(question(stack), Layout(**layout)))  # type: ignore[arg-type]
    assert [error.pointer for error in found] == pointers
    assert all(error.allowed for error in found)
