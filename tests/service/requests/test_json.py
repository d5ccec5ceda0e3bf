"""JSON requests: a number is a number, everything is bounded, and all errors come at once with what would be right."""

import math
from typing import Any

import pytest

from service.engine.errors import FieldError, InvalidInput
from service.requests.request import FullLayers, SizingRequest
from service.requests.schemas import load_request


def refused(**members: Any) -> list[FieldError]:
    with pytest.raises(InvalidInput) as caught:
        load_request({"model": "70B", **members})
    return list(caught.value.errors)


def only_error(**members: Any) -> FieldError:
    (error,) = refused(**members)
    return error


def test_a_flat_object_becomes_a_request_with_everything_else_not_given() -> None:
    asked = {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"}
    request = load_request(asked)
    assert request == SizingRequest(model="70B", sequence_length=8192, micro_batch=2, gpu="H100")
    assert request.as_asked == asked
    assert request.given() == asked


def test_lists_become_tuples_and_a_number_of_recomputed_layers_is_typed() -> None:
    request = load_request(
        {
            "model": "70B", "gpu": ["H100", {"memory_bytes": 85_000_000_000}], "recompute": {"full_layers": 20},
            "lora_targets": ["q_proj", "v_proj"], "method": "lora", "kernels": ["cross-entropy", "-gelu"],
            "offload": [], "bf16_layers": [0, 5],
        }
    )  # fmt: skip
    assert request.gpu == ("H100", {"memory_bytes": 85_000_000_000})
    assert request.recompute == FullLayers(20)
    assert request.lora_targets == ("q_proj", "v_proj")
    assert request.kernels == ("cross-entropy", "-gelu")
    assert request.offload == ()
    assert request.bf16_layers == (0, 5)


def test_null_is_a_key_that_is_not_given() -> None:
    assert load_request({"model": "70B", "gpus": None, "recompute": None}) == SizingRequest(model="70B")


def test_a_whole_float_is_an_integer() -> None:
    request = load_request({"model": "70B", "sequence_length": 8192.0, "tokens": 1.5e13})
    assert (request.sequence_length, request.tokens) == (8192, 15_000_000_000_000)
    assert type(request.sequence_length) is int


def test_auto_leaves_a_degree_the_batch_the_sharding_or_recomputation_to_the_recommender() -> None:
    request = load_request({"model": "70B", "micro_batch": "auto", "tp": "auto", "shard": "auto", "recompute": "auto"})
    assert (request.micro_batch, request.tp, request.shard, request.recompute) == ("auto",) * 4


def test_text_for_a_number_is_refused_with_the_number_to_send() -> None:
    for text in ("8k", "8192", "8K"):
        error = only_error(sequence_length=text)
        assert error.pointer == "/sequence_length"
        assert error.given == text
        assert error.allowed == "a whole number from 1 to 16,777,216"
        assert error.suggestions == ("8192",)


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        -8192,
        10**30,
        16_777_217,
        1e300,
        math.nan,
        math.inf,
        -math.inf,
        0.5,
        8192.5,
        True,
        False,
        [],
        {},
        "",
        "auto",
    ],
)
def test_what_is_no_sequence_length_is_refused(value: Any) -> None:
    error = only_error(sequence_length=value)
    assert error.pointer == "/sequence_length"
    assert error.allowed is not None and "16,777,216" in error.allowed


def test_a_number_too_long_to_print_is_told_by_its_size() -> None:
    assert only_error(sequence_length=10**5000).given == "a number of about 10^5000"


def test_a_fraction_is_refused_with_its_neighbours() -> None:
    assert only_error(micro_batch=1.5).suggestions == ("1", "2")


@pytest.mark.parametrize("value", [-0.01, 1, 0.91, math.nan, math.inf, "0.05", True])
def test_a_margin_outside_its_range_is_refused(value: Any) -> None:
    assert only_error(margin=value).allowed == "a number from 0 to 0.9"


@pytest.mark.parametrize("value", [0, 1, "true", "false", [], 1.0])
def test_a_boolean_is_true_or_false_and_nothing_like_it(value: Any) -> None:
    assert only_error(compile=value).pointer == "/compile"


def test_a_boolean_as_text_is_answered_with_the_boolean() -> None:
    assert only_error(compile="true").suggestions == ("true",)


def test_an_unknown_choice_is_answered_with_the_nearest_and_the_list() -> None:
    error = only_error(optimizer="adam-w")
    assert error.suggestions[0] == "adamw"
    assert error.allowed is not None and "adafactor" in error.allowed
    assert only_error(precision="bfloat16").suggestions == ("bf16",)
    assert only_error(recompute="Full").suggestions == ("full",)
    assert only_error(shard="zero3").suggestions == ("parameters",)


def test_an_unknown_key_is_answered_with_the_nearest_and_the_list() -> None:
    error = only_error(micro_bacth=2)
    assert error.pointer == "/micro_bacth"
    assert error.suggestions[0] == "micro_batch"
    assert error.given == "2"
    assert error.allowed is not None and "sequence_length" in error.allowed


def test_all_errors_are_told_at_once_in_the_order_of_the_vocabulary() -> None:
    errors = refused(tp=0, sequence_length="8k", optimizer="adam", margin=2, zzz=1, gpu=[], lora_targets=["q"])
    assert [error.pointer for error in errors] == [
        "/sequence_length", "/gpu", "/lora_targets/0", "/optimizer", "/tp", "/margin", "/zzz",
    ]  # fmt: skip


def test_every_wrong_item_of_a_list_is_told_with_its_place() -> None:
    errors = refused(method="lora", lora_targets=["q_proj", "vproj", 3])
    assert [error.pointer for error in errors] == ["/lora_targets/1", "/lora_targets/2"]
    assert errors[0].suggestions[0] == "v_proj"


def test_hundreds_of_unknown_keys_are_not_all_answered() -> None:
    assert len(refused(**{f"key{number}": 1 for number in range(5000)})) == 20


def test_a_request_without_a_model_says_so() -> None:
    with pytest.raises(InvalidInput) as caught:
        load_request({"gpus": 8})
    assert [error.pointer for error in caught.value.errors] == ["/model"]


@pytest.mark.parametrize("body", [None, [], "70B", 7, True, [{"model": "70B"}]])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput, match="not a JSON object"):
        load_request(body)


@pytest.mark.parametrize("model", ["", "  ", "x" * 201, "a\nb", "a\x00", 7, 7e9, True, [], ["70B"]])
def test_a_model_that_is_neither_name_nor_object_is_refused(model: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_request({"model": model})
    assert [error.pointer for error in caught.value.errors] == ["/model"]


@pytest.mark.parametrize(
    ("model", "pointer"),
    [
        ({}, "/model"),
        ({"params": 7e9}, "/model"),
        ({"parameters": 7e9, "hf_config": {}}, "/model"),
        ({"parameters": "7B"}, "/model/parameters"),
        ({"parameters": True}, "/model/parameters"),
        ({"parameters": 0}, "/model/parameters"),
        ({"parameters": 1e14}, "/model/parameters"),
        ({"parameters": 7.5}, "/model/parameters"),
        ({"parameters": math.nan}, "/model/parameters"),
        ({"hf_config": "llama"}, "/model/hf_config"),
        ({"architecture": []}, "/model/architecture"),
        ({"architecture": {"layers": 10**30}}, "/model/architecture/layers"),
        ({"architecture": {"moe": {"experts": math.inf}}}, "/model/architecture/moe/experts"),
        ({"hf_config": {"x": "y" * 5000}}, "/model/hf_config/x"),
        ({"hf_config": {"x": [0] * 30_000}}, "/model"),
    ],
)
def test_a_model_object_is_bounded_and_has_one_member(model: Any, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_request({"model": model})
    assert [error.pointer for error in caught.value.errors] == [pointer]


def test_an_object_nested_too_deeply_is_refused() -> None:
    nested: Any = 1
    for _ in range(1000):
        nested = {"a": nested}
    with pytest.raises(InvalidInput, match="too deeply nested"):
        load_request({"model": {"hf_config": nested}})


def test_at_most_sixteen_gpus_are_compared() -> None:
    assert load_request({"model": "70B", "gpu": ["H100"] * 16}).gpu == ("H100",) * 16
    assert only_error(gpu=["H100"] * 17).pointer == "/gpu"


def test_a_command_stands_alone() -> None:
    errors = refused(command="70B", gpus=8)
    assert [error.pointer for error in errors] == ["/model", "/gpus"]


def test_a_command_is_read_by_the_grammar_and_kept_as_it_was_asked() -> None:
    request = load_request({"command": "70B seq=8k mb=2 gpu=H100"})
    assert request.as_asked == {"command": "70B seq=8k mb=2 gpu=H100"}
    assert request.command == "70B seq=8k mb=2 gpu=H100"
    assert request.given() == {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"}


@pytest.mark.parametrize("command", [7, ["70B"], {}, True])
def test_a_command_that_is_no_text_is_refused(command: Any) -> None:
    with pytest.raises(InvalidInput, match="command is not text"):
        load_request({"command": command})
