"""How the numbers of an answer hang together, line by line of the contract, over a grid of requests."""

from __future__ import annotations

from typing import Any

import pytest

from service.catalog.facts import packaged
from service.engine.errors import InvalidInput
from service.requests.schemas import load_request
from service.sizings.answer import answer

STATE = ("weights", "gradients", "master_weights", "optimizer_moments")
TERMS = (*STATE, "activations", "working", "runtime")
MOMENTS = ["forward_end", "loss", "first_backward", "layer_backward", "backward_end", "optimizer_step"]
MEMBERS = {
    "engine_version", "catalog_digest", "request", "inputs", "model", "gpu", "whole_model", "per_gpu", "recommendation",
    "sharding_floor", "levers", "time", "verdict", "comparison", "nearest_fit", "warnings",
}  # fmt: skip

REQUESTS: list[dict[str, Any]] = [
    {"model": "llama-3.1-70b", "micro_batch": 2},
    {"model": "llama-3.1-70b", "gpus": 64},
    {"model": "llama-3.1-70b", "gpus": 64, "tp": 8},
    {"model": "llama-3.1-70b", "gpus": 64, "tp": 8, "pp": 4, "recompute": "full"},
    {"model": "llama-3.1-70b", "gpus": 64, "tp": 8, "pp": 4, "vpp": 5, "stack": "megatron", "global_batch": 64},
    {"model": "llama-3.1-8b", "gpus": 8, "stack": "huggingface", "dp": 8},
    {"model": "llama-3.1-8b", "gpus": 1, "stack": "huggingface", "dp": 1, "method": "qlora"},
    {"model": "llama-3.1-8b", "gpus": 8, "stack": "torchtitan", "dp": 8, "recompute": "selective"},
    {"model": "llama-3.1-8b", "gpus": 8, "stack": "deepspeed", "dp": 8, "shard": "gradients"},
    {"model": "mixtral-8x7b", "gpus": 32, "tp": 4, "ep": 8, "stack": "megatron"},
    {"model": "deepseek-v3", "gpus": 512, "pp": 8, "ep": 64, "stage_layers": [8, 8, 8, 8, 8, 7, 7, 7]},
    {"model": "gpt2", "precision": "fp32", "attention": "eager", "gpus": 1},
    {"model": {"parameters": 70_000_000_000}, "gpus": 64, "tp": 8},
    {"model": "llama-3.1-8b", "optimizer": "adamw-8bit", "gpus": 1, "precision": "bf16", "dp": 1},
]


@pytest.fixture(scope="module", params=REQUESTS, ids=lambda request: str(request)[:90])
def sizing(request: pytest.FixtureRequest) -> dict[str, Any]:
    return answer(load_request(request.param), packaged())


def of(terms: list[dict[str, Any]], *names: str) -> int:
    return sum(term["bytes"] for term in terms if term["term"] in names)


def test_every_member_is_there(sizing: dict[str, Any]) -> None:
    assert set(sizing) == MEMBERS


def test_whole_model_has_five_terms_whose_state_adds_up(sizing: dict[str, Any]) -> None:
    whole = sizing["whole_model"]
    assert [term["term"] for term in whole["terms"]] == list(TERMS[:5])
    assert whole["state_bytes"] == of(whole["terms"], *STATE)
    assert whole["activation_bytes"] == of(whole["terms"], "activations")
    assert whole["bytes_per_parameter"] == round(whole["state_bytes"] / sizing["model"]["parameters"], 2)


def test_terms_of_the_fullest_gpu_add_up_to_its_peak(sizing: dict[str, Any]) -> None:
    per_gpu = sizing["per_gpu"]
    assert [term["term"] for term in per_gpu["terms"]] == list(TERMS)
    assert of(per_gpu["terms"], *TERMS) == per_gpu["peak"]["device_bytes"]
    assert of(per_gpu["terms"], *TERMS[:-1]) == per_gpu["peak"]["allocated_bytes"]


def test_parts_add_up_to_their_term(sizing: dict[str, Any]) -> None:
    for term in (*sizing["whole_model"]["terms"], *sizing["per_gpu"]["terms"], *sizing["sharding_floor"]["terms"]):
        assert sum(part["bytes"] for part in term["parts"]) == term["bytes"], term["term"]


def test_runtime_is_what_the_device_shows_beyond_tensors(sizing: dict[str, Any]) -> None:
    peak, runtime = sizing["per_gpu"]["peak"], sizing["per_gpu"]["terms"][-1]
    assert runtime["bytes"] == peak["device_bytes"] - peak["allocated_bytes"]
    assert {"allocator", "context", "communicators"} <= {part["name"] for part in runtime["parts"]}
    allocator = next(part["bytes"] for part in runtime["parts"] if part["name"] == "allocator")
    assert allocator == peak["reserved_bytes"] - peak["allocated_bytes"]


def test_moments_come_in_the_order_of_the_step_and_the_peak_is_the_largest(sizing: dict[str, Any]) -> None:
    moments, peak = sizing["per_gpu"]["moments"], sizing["per_gpu"]["peak"]
    assert [moment["moment"] for moment in moments] == MOMENTS
    for moment in moments:
        assert sum(moment["terms"].values()) == moment["allocated_bytes"]
    assert max(moment["allocated_bytes"] for moment in moments) == peak["allocated_bytes"]
    at_peak = next(moment for moment in moments if moment["moment"] == peak["moment"])
    assert at_peak["allocated_bytes"] == peak["allocated_bytes"]


def test_the_fullest_stage_is_the_one_shown(sizing: dict[str, Any]) -> None:
    per_gpu = sizing["per_gpu"]
    assert [stage["stage"] for stage in per_gpu["stages"]] == list(range(per_gpu["layout"]["pp"]))
    shown = per_gpu["stages"][per_gpu["stage"]]
    assert shown["device_bytes"] == per_gpu["peak"]["device_bytes"]
    assert shown["device_bytes"] == max(stage["device_bytes"] for stage in per_gpu["stages"])


def test_bounds_hold_the_prediction(sizing: dict[str, Any]) -> None:
    peak = sizing["per_gpu"]["peak"]
    assert peak["low_bytes"] <= peak["device_bytes"] <= peak["high_bytes"]
    for level in ("allocated", "reserved", "device"):
        low, high = peak["intervals"][level]
        assert low <= peak[f"{level}_bytes"] <= high
    assert peak["confidence"] in ("high", "medium", "low")


def test_fits_follows_from_headroom_and_headroom_from_what_is_needed(sizing: dict[str, Any]) -> None:
    per_gpu, gpu = sizing["per_gpu"], sizing["gpu"]
    assert gpu["usable_bytes"] == int(gpu["memory_bytes"] * (1 - sizing["inputs"]["margin"]["value"]))
    assert per_gpu["usable_bytes"] == gpu["usable_bytes"]
    assert per_gpu["headroom_bytes"] == per_gpu["usable_bytes"] - per_gpu["peak"]["needed_bytes"]
    assert per_gpu["fits"] == (per_gpu["headroom_bytes"] >= 0)
    code = sizing["verdict"]["code"]
    if not per_gpu["fits"]:
        assert code == "does_not_fit"
    else:
        assert code == ("tight" if per_gpu["peak"]["high_bytes"] > per_gpu["usable_bytes"] else "fits")


def test_degrees_multiply_to_the_gpus_and_fill_whole_nodes(sizing: dict[str, Any]) -> None:
    per_gpu, layout = sizing["per_gpu"], sizing["per_gpu"]["layout"]
    assert layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"] == per_gpu["gpus"]
    assert per_gpu["nodes"] == -(-per_gpu["gpus"] // sizing["gpu"]["gpus_per_node"])


def test_every_input_says_where_it_came_from(sizing: dict[str, Any]) -> None:
    for name, entry in sizing["inputs"].items():
        assert set(entry) == {"value", "from"}, name
        assert entry["from"] in ("request", "default", "stack", "model", "gpu", "derived", "solved"), name
    for name in sizing["request"]:
        if name != "model":
            assert sizing["inputs"][name]["from"] == "request", name


def test_levers_change_keys_of_the_request_and_save_something(sizing: dict[str, Any]) -> None:
    for lever in sizing["levers"]:
        assert lever["saves_bytes_per_gpu"] > 0
        assert lever["touches"] in ("state", "activations", "state and activations")
        load_request({**sizing["request"], **lever["change"]})


def test_exactly_seventy_billion_parameters_are_1120_gb_of_state() -> None:
    """The capacity of fourteen 80 GB (decimal) chips."""
    sizing = answer(load_request({"model": {"parameters": 7e10}, "gpus": 64, "tp": 8}), packaged())
    assert sizing["model"]["parameters"] == 70_000_000_000
    assert sizing["whole_model"]["state_bytes"] == 1_120_000_000_000 == 14 * 80_000_000_000


def test_whole_model_activations_are_those_of_the_recompute_that_was_asked() -> None:
    """`none` when the recommender was left to choose, whatever it chose."""
    asked_nothing = answer(load_request({"model": "llama-3.1-70b", "micro_batch": 2}), packaged())
    asked_none = answer(load_request({"model": "llama-3.1-70b", "micro_batch": 2, "recompute": "none"}), packaged())
    assert asked_nothing["per_gpu"]["layout"]["recompute"] != "none"
    assert asked_nothing["whole_model"]["activation_bytes"] == asked_none["whole_model"]["activation_bytes"]


def test_floor_terms_add_up_to_the_floor(sizing: dict[str, Any]) -> None:
    floor = sizing["sharding_floor"]
    assert of(floor["terms"], *TERMS) == floor["bytes_per_gpu"]


@pytest.mark.parametrize(
    "asked", [REQUESTS[0], REQUESTS[1], {"model": "llama-3.1-8b", "gpus": 8}, REQUESTS[6]], ids=str
)
def test_a_lever_sent_back_saves_what_it_promises(asked: dict[str, Any]) -> None:
    before = answer(load_request(asked), packaged())
    needed = before["per_gpu"]["peak"]["needed_bytes"]
    for lever in before["levers"]:
        after = answer(load_request({**asked, **lever["change"]}), packaged())
        assert needed - after["per_gpu"]["peak"]["needed_bytes"] == lever["saves_bytes_per_gpu"], lever["lever"]


def test_more_layers_to_recompute_than_the_model_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="32 layers"):
        asked = {"model": "llama-3.1-8b", "gpus": 8, "dp": 8, "recompute": {"full_layers": 999}}
        answer(load_request(asked), packaged())


def test_a_precision_that_the_gpu_lacks_is_said() -> None:
    sizing = answer(load_request({"model": "llama-3.1-8b", "gpu": "A100", "gpus": 8, "precision": "fp8"}), packaged())
    assert "precision_not_on_gpu" in {warning["code"] for warning in sizing["warnings"]}
