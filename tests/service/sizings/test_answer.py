"""The whole answer without a service: which question is asked, and what each kind of answer holds."""

from typing import Any

import pytest

from service.catalog.facts import packaged
from service.engine.errors import InvalidInput
from service.requests.schemas import load_request
from service.sizings.answer import answer

GIB = 1 << 30


def sizing(**request: Any) -> dict[str, Any]:
    return answer(load_request(request), packaged())


def test_no_degree_and_no_count_asks_for_both() -> None:
    found = sizing(model="llama-3.1-70b", sequence_length=8192, micro_batch=2, gpu="H100")
    recommended = found["recommendation"]
    assert recommended["minimum_gpus"] == recommended["gpus"] == found["per_gpu"]["gpus"] == 16
    assert recommended["layout"] == found["per_gpu"]["layout"]
    assert found["per_gpu"]["fits"]
    assert 1 <= len(recommended["alternatives"]) <= 5
    assert found["nearest_fit"] is None
    assert found["time"]["step_s"] > 0


def test_a_count_asks_for_the_best_layout_on_it() -> None:
    found = sizing(model="llama-3.1-70b", gpus=64)
    assert found["per_gpu"]["gpus"] == found["recommendation"]["gpus"] == 64
    assert found["recommendation"]["minimum_gpus"] == 16
    assert any("16 would be enough" in line for line in found["recommendation"]["why"])


def test_a_count_that_is_too_small_is_told_what_would_do() -> None:
    found = sizing(model="llama-3.1-70b", gpus=8)
    assert not found["per_gpu"]["fits"]
    assert found["verdict"]["code"] == "does_not_fit"
    assert found["per_gpu"]["gpus"] == 8
    assert found["recommendation"]["gpus"] == 16


def test_a_layout_that_fits_needs_no_recommendation() -> None:
    found = sizing(model="llama-3.1-8b", gpus=8, dp=8)
    assert found["per_gpu"]["fits"]
    assert found["recommendation"] is None
    assert found["per_gpu"]["layout"]["recompute"] == "none"


def test_a_layout_that_does_not_fit_gets_the_nearest_that_does() -> None:
    found = sizing(model="llama-3.1-8b", gpus=2, tp=2, sequence_length=8192)
    assert not found["per_gpu"]["fits"]
    nearest = found["recommendation"]
    assert (nearest["gpus"], nearest["layout"]["tp"]) == (2, 2)
    assert nearest["layout"]["recompute"] == "full"
    assert nearest["layout"]["micro_batch"] == 1


def test_auto_leaves_one_degree_open_and_binds_the_rest() -> None:
    found = sizing(model="llama-3.1-70b", tp=8, dp="auto")
    layout = found["per_gpu"]["layout"]
    assert (layout["tp"], layout["pp"], layout["cp"]) == (8, 1, 1)
    assert found["per_gpu"]["gpus"] == 8 * layout["dp"]


@pytest.mark.parametrize(
    ("key", "value", "member"),
    [("recompute", "none", "recompute"), ("shard", "optimizer", "shard"), ("micro_batch", 4, "micro_batch")],
)
def test_what_is_given_binds_the_recommender(key: str, value: Any, member: str) -> None:
    layout = sizing(model="llama-3.1-8b", gpus=32, **{key: value})["per_gpu"]["layout"]
    assert layout["dp"] * layout["cp"] > 1
    assert layout[member] == value


def test_an_open_micro_batch_is_chosen() -> None:
    found = sizing(model="llama-3.1-8b", gpus=8, micro_batch="auto")
    assert found["per_gpu"]["fits"]
    assert found["per_gpu"]["layout"]["micro_batch"] >= 1
    assert found["inputs"]["micro_batch"]["from"] == "derived"


def test_only_what_the_global_batch_can_be_split_over_is_recommended() -> None:
    found = sizing(model="llama-3.1-8b", global_batch=24)
    layout = found["per_gpu"]["layout"]
    assert layout["dp"] * layout["micro_batch"] * layout["gradient_accumulation"] == 24


def test_a_run_that_nothing_holds_is_answered_with_the_run_one_change_away() -> None:
    found = sizing(model="llama-3.1-405b", gpu="a100-sxm4-40gb", sequence_length=1 << 20, micro_batch=8)
    assert found["recommendation"] is None
    assert found["verdict"]["code"] == "does_not_fit"
    nearest = found["nearest_fit"]
    assert list(nearest["change"]) == ["sequence_length"]
    length = nearest["change"]["sequence_length"]
    again = sizing(model="llama-3.1-405b", gpu="a100-sxm4-40gb", sequence_length=length, micro_batch=8)
    assert again["per_gpu"]["fits"]
    assert again["per_gpu"]["gpus"] == nearest["gpus"]


def test_money_and_days_need_tokens_and_a_price() -> None:
    bare = sizing(model="llama-3.1-8b", gpus=8)["time"]
    assert bare["days"] is None and bare["cost"] is None
    whole = sizing(model="llama-3.1-8b", gpus=8, tokens=10**12)
    time = whole["time"]
    assert time["days"] == pytest.approx(1e12 / time["tokens_per_s"] / 86_400, rel=1e-3)
    price = float(whole["gpu"]["price_per_hour"]["usd"])
    assert float(time["cost"]["usd"]) == pytest.approx(time["days"] * 24 * 8 * price, rel=1e-3)
    assert time["cost"]["price_date"] == whole["gpu"]["price_per_hour"]["price_date"]
    low, high = time["intervals"]["days"]
    assert low < time["days"] < high


def test_a_device_of_unknown_speed_has_no_time() -> None:
    assert sizing(model="llama-3.1-8b", gpu={"memory_bytes": 80 * 10**9}, gpus=8)["time"] is None


def test_a_list_of_gpus_is_compared_and_marked() -> None:
    found = sizing(model="llama-3.1-70b", gpu=["H100", "H200", "B200"], tokens=10**12, goal="cost")
    rows = found["comparison"]
    assert [row["fits"] for row in rows] == [True, True, True]
    costs = [float(row["cost"]["usd"]) for row in rows]
    assert costs == sorted(costs)
    assert [row["cheapest"] for row in rows] == [True, False, False]
    assert sum(row["fastest"] for row in rows) == 1
    assert found["gpu"]["id"] == rows[0]["gpu"]


def test_the_goal_decides_which_gpu_answers() -> None:
    fewest = sizing(model="llama-3.1-70b", gpu=["H100", "B200"], goal="gpus")
    assert fewest["gpu"]["id"] == "b200-sxm-180gb"
    assert fewest["comparison"][0]["gpus"] < fewest["comparison"][1]["gpus"]


def test_a_single_gpu_has_no_comparison() -> None:
    assert sizing(model="llama-3.1-8b", gpus=8)["comparison"] is None


@pytest.mark.parametrize("changes", [{"tp": 3, "dp": "auto"}, {"pp": 5, "dp": "auto"}])
def test_a_degree_that_cannot_be_is_refused_though_the_rest_is_open(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        sizing(model="llama-3.1-8b", **changes)
    assert refused.value.errors[0].pointer == f"/{next(iter(changes))}"
    assert refused.value.errors[0].suggestions


def test_a_count_that_cannot_be_laid_out_is_refused_with_the_nearest_that_can() -> None:
    with pytest.raises(InvalidInput) as refused:
        sizing(model="llama-3.1-8b", gpus=13, global_batch=64)
    error = refused.value.errors[0]
    assert error.pointer == "/gpus"
    assert set(error.suggestions) == {"8", "16"}


def test_levers_change_the_answer_as_they_say() -> None:
    request = {"model": "llama-3.1-8b", "gpus": 8, "dp": 8, "micro_batch": 2, "sequence_length": 8192}
    found = sizing(**request)
    now = found["per_gpu"]["peak"]["needed_bytes"]
    for lever in found["levers"]:
        again = sizing(**(request | lever["change"]))
        assert now - again["per_gpu"]["peak"]["needed_bytes"] == lever["saves_bytes_per_gpu"], lever["lever"]


def test_the_floor_names_the_key_that_lowers_it() -> None:
    found = sizing(model="llama-3.1-8b", gpus=8, micro_batch=4)
    key, _, value = found["sharding_floor"]["then"].partition("=")
    assert key in found["inputs"]
    assert value
