"""Step times against published throughput, and the laws that any such model must obey."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.catalog.facts import packaged
from service.catalog.resolve import resolve_gpu, resolve_model
from service.engine.flops import model_flops
from service.engine.question import Plan
from service.engine.step_time import interval, of_plan, peak_flops
from service.requests.schemas import load_request
from service.sizings.asking import ask
from service.sizings.inputs import settle

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "throughput.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in PUBLISHED.read_text().splitlines()]
SOURCES = sorted({row["source"] for row in ROWS})


def laid_out(request: dict[str, Any]) -> Plan:
    asked = load_request(request)
    architecture = resolve_model(packaged(), asked.model).architecture
    gpu = resolve_gpu(packaged(), asked.gpu).gpu
    made = ask(asked, settle(asked, architecture, gpu), architecture, gpu).plan
    assert made is not None
    return made


def run(**changes: Any) -> Plan:
    base = {
        "model": "llama-3.1-70b", "gpu": "H100", "sequence_length": 8192, "global_batch": 512, "gpus": 256, "tp": 8,
        "recompute": "none",
    }  # fmt: skip
    return laid_out(base | changes)


def rate(made: Plan) -> float:
    timed = of_plan(made)
    assert timed is not None
    return float(timed.tokens[0] / timed.step_s[0])


def predicted_over_published(source: str) -> np.ndarray[Any, Any]:
    rows = [row for row in ROWS if row["source"] == source]
    made = [laid_out(row["request"]) for row in rows]
    return np.asarray(
        [rate(plan) / plan.gpus / row["tokens_per_s_per_gpu"] for plan, row in zip(made, rows, strict=True)]
    )


@pytest.mark.parametrize("source", SOURCES)
def test_published_throughput_is_met_within_an_eighth_at_the_median(source: str) -> None:
    ratio = predicted_over_published(source)
    assert len(ratio) >= 15
    assert np.median(np.abs(ratio - 1)) < 0.125
    assert 0.85 < np.median(ratio) < 1.15


def test_the_interval_holds_four_of_five_published_runs() -> None:
    inside, weight = 0.0, 0.0
    for source in SOURCES:
        rows = [row for row in ROWS if row["source"] == source]
        ratio = predicted_over_published(source)
        low, high = zip(*(interval(laid_out(row["request"]).question) for row in rows), strict=True)
        inside += float(np.mean((1 / ratio >= low) & (1 / ratio <= high)))
        weight += 1
    assert inside / weight >= 0.8


def test_model_flops_are_six_per_parameter_and_attention() -> None:
    """Llama 3.1 8B at 8,192: 6 × (8,030,261,248 − 525,336,576 of the embedding table − 266,240 of norms) and
    12 · 32 · 4096 · 8192 for attention (PaLM, appendix B)."""
    architecture = resolve_model(packaged(), "llama-3.1-8b").architecture
    matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    assert model_flops(architecture, 8192) == 6 * matrices + 12 * 32 * 4096 * 8192


def test_a_mixture_counts_the_experts_that_a_token_meets() -> None:
    dense = resolve_model(packaged(), "mixtral-8x7b").architecture
    assert dense.moe is not None
    eight = replace(dense, moe=replace(dense.moe, top_k=8))
    two_of_eight = model_flops(dense, 4096) - model_flops(replace(dense, moe=replace(dense.moe, top_k=1)), 4096)
    assert 7 * two_of_eight == pytest.approx(model_flops(eight, 4096) - model_flops(dense, 4096) + two_of_eight)


def test_the_pipeline_bubble_is_its_published_share() -> None:
    """(p − 1) / (m · v) of the useful time (arXiv:2104.04473, section 2.2): halved by two chunks a stage."""
    plain = of_plan(run(stack="megatron", tp=4, pp=4, gpus=64, global_batch=64))
    chunked = of_plan(run(stack="megatron", tp=4, pp=4, vpp=2, gpus=64, global_batch=64))
    assert plain is not None and chunked is not None
    # 64 sequences over dp = 4 are 16 micro-batches: bubbles of 3/16 and 3/32 around the same work
    ratio = float(plain.step_s[0] / chunked.step_s[0])
    assert ratio == pytest.approx((1 + 3 / 16) / (1 + 3 / 32), rel=0.02)


@pytest.mark.parametrize(
    ("slower", "faster"),
    [
        ({"recompute": "full"}, {}),
        ({"tp": 8}, {"tp": 4}),
        ({"gpu": "A100"}, {"gpu": "H100"}),
        ({"pp": 8, "stack": "megatron", "global_batch": 32}, {"pp": 8, "stack": "megatron", "global_batch": 256}),
        ({"precision": "bf16-mixed"}, {"precision": "fp8"}),
        ({"sequence_length": 32_768, "global_batch": 128}, {"sequence_length": 8192}),
    ],
)
def test_what_is_known_to_be_slower_is_slower(slower: dict[str, Any], faster: dict[str, Any]) -> None:
    assert rate(run(**slower)) < rate(run(**faster))


def test_tensor_parallelism_across_nodes_costs_dearly() -> None:
    inside, across = rate(run(tp=8)), rate(run(tp=16, gpus=256))
    assert across < 0.6 * inside


def test_utilisation_is_between_nothing_and_everything() -> None:
    for row in ROWS:
        timed = of_plan(laid_out(row["request"]))
        assert timed is not None
        assert 0 < float(timed.mfu[0]) < 0.75


def test_an_unknown_speed_has_no_time() -> None:
    made = laid_out({"model": "llama-3.1-8b", "gpu": {"memory_bytes": 80_000_000_000}, "dp": 8, "gpus": 8})
    assert peak_flops(made.question) is None
    assert of_plan(made) is None


def test_a_generation_without_published_runs_has_a_wider_interval() -> None:
    known = laid_out({"model": "llama-3.1-8b", "gpu": "H100", "dp": 8, "gpus": 8})
    unknown = laid_out({"model": "llama-3.1-8b", "gpu": "MI300X", "dp": 8, "gpus": 8})
    assert interval(unknown.question)[0] < interval(known.question)[0] < 1 < interval(known.question)[1]
    assert interval(unknown.question)[1] > interval(known.question)[1]
