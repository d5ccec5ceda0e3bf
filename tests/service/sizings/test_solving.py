"""The largest micro-batch or sequence that fits: one more does not."""

from typing import Any

import pytest

from service.catalog.facts import packaged
from service.requests.schemas import load_request
from service.sizings.answer import answer
from service.sizings.solving import largest_that


def sizing(**request: Any) -> dict[str, Any]:
    return answer(load_request(request), packaged())


@pytest.mark.parametrize("threshold", [0, 1, 2, 3, 7, 8, 99, 100])
def test_the_largest_number_is_found_by_halving(threshold: int) -> None:
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= threshold

    assert largest_that(fits, 100) == threshold
    assert len(asked) <= 14


@pytest.mark.parametrize("layout", [{"dp": 8}, {}], ids=["layout given", "layout open"])
def test_one_more_sequence_per_micro_batch_does_not_fit(layout: dict[str, int]) -> None:
    request = {"model": "llama-3.1-8b", "gpus": 8, "sequence_length": 4096, "recompute": "full"} | layout
    found = sizing(**request, solve="micro_batch")
    size = found["inputs"]["micro_batch"]["value"]
    assert found["inputs"]["micro_batch"]["from"] == "solved"
    assert found["per_gpu"]["fits"]
    assert sizing(**request, micro_batch=size)["per_gpu"]["fits"]
    assert not sizing(**request, micro_batch=size + 1)["per_gpu"]["fits"]


def test_the_next_longer_sequence_does_not_fit() -> None:
    request = {"model": "llama-3.1-8b", "gpus": 8, "dp": 8, "recompute": "full"}
    found = sizing(**request, solve="sequence_length")
    length = found["inputs"]["sequence_length"]["value"]
    assert found["per_gpu"]["fits"]
    assert length % 128 == 0
    assert not sizing(**request, sequence_length=length + 128)["per_gpu"]["fits"]


def test_a_solved_micro_batch_divides_the_global_batch() -> None:
    found = sizing(model="llama-3.1-8b", gpus=8, global_batch=96, solve="micro_batch", sequence_length=2048)
    layout = found["per_gpu"]["layout"]
    assert 96 % (layout["dp"] * layout["micro_batch"]) == 0
    assert found["per_gpu"]["fits"]


def test_where_not_even_one_fits_the_answer_says_so() -> None:
    found = sizing(model="llama-3.1-405b", gpus=8, solve="micro_batch")
    assert found["inputs"]["micro_batch"]["value"] == 1
    assert not found["per_gpu"]["fits"]


def test_a_learned_position_table_bounds_the_sequence() -> None:
    found = sizing(model="gpt2", gpus=1, solve="sequence_length")
    assert found["inputs"]["sequence_length"]["value"] == 1024
