"""What an answer says in words: short, true, with the figures that it rests on."""

import re
from typing import Any

import pytest

from service.catalog.facts import packaged
from service.requests.schemas import load_request
from service.sizings.answer import answer

GIB = 1 << 30


def sizing(**request: Any) -> dict[str, Any]:
    return answer(load_request(request), packaged())


def test_a_verdict_says_gpus_memory_moment_layout_and_why_not_fewer() -> None:
    found = sizing(model="llama-3.1-70b", micro_batch=2)
    text, peak = found["verdict"]["text"], found["per_gpu"]["peak"]
    assert text.startswith("16 × NVIDIA H100 SXM5 80GB (2 nodes): ")
    assert f"{peak['needed_bytes'] / GIB:.1f} of 75.2 GiB per GPU" in text
    assert "shard=parameters" in text
    assert "8 are not enough" in text
    assert "optimizer moments" in text


def test_a_run_that_does_not_fit_is_told_by_how_much() -> None:
    found = sizing(model="llama-3.1-8b", gpus=1, dp=1)
    missing = -found["per_gpu"]["headroom_bytes"] / GIB
    assert found["verdict"]["code"] == "does_not_fit"
    assert f"{missing:.1f} GiB too much" in found["verdict"]["text"] or f"{missing:.0f} GiB" in found["verdict"]["text"]


def test_one_gpu_is_spoken_of_as_one() -> None:
    found = sizing(model="gpt2")
    assert found["recommendation"]["why"][0].startswith("One GPU holds the run")
    two = sizing(model="llama-3.1-8b")
    assert "1 is not enough" in two["verdict"]["text"]
    assert any(line.startswith("One GPU does not") for line in two["recommendation"]["why"])


@pytest.mark.parametrize(
    ("goal", "words"), [("gpus", "takes least time"), ("cost", "costs least"), ("time", "takes least time")]
)
def test_the_reason_follows_the_goal(goal: str, words: str) -> None:
    found = sizing(model="llama-3.1-8b", goal=goal, global_batch=64)
    assert any(words in line for line in found["recommendation"]["why"])


def test_without_a_known_speed_the_reason_is_another() -> None:
    found = sizing(model="llama-3.1-8b", gpu={"memory_bytes": 80 * 10**9})
    assert any("recomputes least" in line for line in found["recommendation"]["why"])


def test_instead_of_a_layout_that_does_not_fit_it_says_what_changes() -> None:
    found = sizing(model="llama-3.1-8b", gpus=2, tp=2, sequence_length=8192)
    why = found["recommendation"]["why"]
    assert "It changes least of what was asked: recompute none → full." in why
    assert any(line.startswith("As asked (tp=2)") for line in why)


def test_a_mixture_says_what_a_skewed_router_would_need() -> None:
    """The fullest rank with twice its share holds more, and the answer says whether that still fits."""
    asked = {"model": "mixtral-8x7b", "gpus": 32, "tp": 4, "ep": 8, "stack": "megatron"}
    sizing = answer(load_request(asked), packaged())
    said = next(warning["message"] for warning in sizing["warnings"] if warning["code"] == "balanced_routing")
    found = re.search(r"needs ([\d.]+) GiB, which still fits", said)
    assert found is not None
    assert float(found[1]) > sizing["per_gpu"]["peak"]["needed_bytes"] / 2**30
