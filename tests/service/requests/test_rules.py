"""Combinations that contradict themselves are refused before any model is looked up, with a way out."""

from typing import Any

import pytest

from service.engine.errors import FieldError, InvalidInput
from service.requests.request import SizingRequest
from service.requests.rules import known_degrees
from service.requests.schemas import load_request


def only_error(**members: Any) -> FieldError:
    with pytest.raises(InvalidInput) as caught:
        load_request({"model": "70B", **members})
    (error,) = caught.value.errors
    return error


@pytest.mark.parametrize(
    "members",
    [
        {"tp": 8, "pp": 4, "dp": 2, "gpus": 64},
        {"tp": 8, "gpus": 64},
        {"tp": "auto", "pp": 2, "gpus": 8},
        {"tp": 2, "dp": "auto", "gpus": 8},
        {"gpus": 6},
        {"ep": 8, "gpus": 64},
        {"tp": 2, "dp": 4, "micro_batch": 2, "global_batch": 16},
        {"tp": 2, "gpus": 8, "global_batch": 4},
        {"gpus": 6, "global_batch": 7},
        {"micro_batch": "auto", "dp": 4, "global_batch": 8},
        {"tp": 4, "dp": 2, "ep": 4, "etp": 2},
        {"pp": 4, "stage_layers": [15, 16, 16, 15], "stage": 3},
        {"pp": 2, "vpp": 2, "stage_layers": [10, 10, 10, 10]},
        {"solve": "micro_batch", "gpus": 8},
        {"solve": "micro_batch", "gpus": 8, "micro_batch": "auto"},
        {"method": "qlora", "lora_rank": 64},
    ],
)
def test_what_can_be_is_accepted(members: dict[str, Any]) -> None:
    assert load_request({"model": "70B", **members}).model == "70B"


def test_degrees_that_do_not_multiply_to_the_gpus_are_refused_with_both_ways_out() -> None:
    error = only_error(tp=8, pp=4, dp=4, gpus=64)
    assert error == FieldError(
        "/gpus", "tp·pp·dp is 128, but gpus is 64", "64", "tp·pp·dp = gpus", ("dp=2", "gpus=128")
    )  # fmt: skip


def test_a_degree_that_does_not_divide_the_gpus_is_refused_with_its_neighbours() -> None:
    assert only_error(tp=3, gpus=8).suggestions == ("tp=2", "tp=4")
    assert only_error(tp=3, pp=2, gpus=8).suggestions == ("gpus=12",)
    assert only_error(tp="auto", pp=3, gpus=8).pointer == "/pp"


def test_degrees_of_more_gpus_than_any_cluster_are_refused() -> None:
    assert only_error(tp=4096, pp=4096, dp=4096).allowed == "a product of at most 1,048,576 GPUs"


def test_a_global_batch_that_the_ranks_cannot_share_is_refused_with_the_nearest_that_they_can() -> None:
    # dp = 64 / 8 = 8 replicas of 2 sequences: multiples of 16; 100 is nearest to 96.
    error = only_error(tp=8, gpus=64, micro_batch=2, global_batch=100)
    assert (error.pointer, error.allowed, error.suggestions) == (
        "/global_batch", "a multiple of 16", ("global_batch=96",),
    )  # fmt: skip
    assert only_error(micro_batch=3, global_batch=8).suggestions == ("global_batch=9",)


def test_experts_spread_over_ranks_that_are_there() -> None:
    assert only_error(tp=2, dp=2, ep=8).detail == "ep = 8 does not divide tp·cp·dp = 4"
    assert only_error(tp=2, dp=2, ep=4, etp=2).detail == "ep·etp = 8 does not divide tp·cp·dp = 4"


def test_every_pipeline_chunk_has_its_number_of_layers() -> None:
    error = only_error(pp=4, stage_layers=[20, 20, 20])
    assert (error.pointer, error.allowed) == ("/stage_layers", "4 numbers, one for each chunk")
    assert only_error(stage_layers=[40, 40]).suggestions == ("pp=2",)


def test_a_stage_is_one_of_the_pipeline() -> None:
    assert only_error(pp=4, stage=4).allowed == "0 to 3"
    assert only_error(tp=2, stage=1).allowed == "0 to 0"


def test_virtual_chunks_need_a_pipeline() -> None:
    assert only_error(tp=2, vpp=2).suggestions == ("pp=2",)


def test_solving_needs_gpus_and_leaves_what_is_solved_for_open() -> None:
    assert only_error(solve="micro_batch").pointer == "/gpus"
    assert only_error(solve="sequence_length", gpus=8, sequence_length=4096).pointer == "/sequence_length"


def test_adapter_keys_need_adapters() -> None:
    assert only_error(lora_rank=16).suggestions == ("method=lora",)
    assert only_error(method="full", lora_targets="attention").pointer == "/lora_targets"


def test_a_micro_batch_of_more_tokens_than_64_bits_bear_is_refused() -> None:
    error = only_error(micro_batch=65_536, sequence_length=1_048_576)
    assert error.allowed == "at most 268,435,456 tokens in a micro-batch"


def test_a_given_layout_has_degrees_of_one_and_dp_fills_the_gpus() -> None:
    assert known_degrees(SizingRequest(model="m", tp=8, gpus=64)) == {"tp": 8, "pp": 1, "cp": 1, "dp": 8}
    assert known_degrees(SizingRequest(model="m", tp=8)) == {"tp": 8, "pp": 1, "cp": 1, "dp": 1}
    assert known_degrees(SizingRequest(model="m", gpus=64)) is None
    assert known_degrees(SizingRequest(model="m", tp=8, dp="auto", gpus=64)) is None
