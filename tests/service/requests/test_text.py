"""Query strings and forms: everything is text, the short words of commands are keys too."""

import pytest

from service.engine.errors import FieldError, InvalidInput
from service.requests.schemas import load_request, load_text_request


def refused(**texts: str) -> list[FieldError]:
    with pytest.raises(InvalidInput) as caught:
        load_text_request({"model": "70B", **texts})
    return list(caught.value.errors)


def test_text_means_the_json_request_it_would_be() -> None:
    request = load_text_request(
        {
            "model": "llama-3-70b", "sequence_length": "8k", "micro_batch": "2", "global_batch": "1k", "gpus": "1K",
            "compile": "", "sp": "true", "margin": "5%", "tokens": "15T", "recompute": "full:20",
            "lora_targets": "q_proj,v_proj", "lora": "8", "gpu": "H100,H200", "offload": "none",
            "optimizer": "AdamW_8bit",
        }
    )  # fmt: skip
    asked = {
        "model": "llama-3-70b", "sequence_length": 8192, "micro_batch": 2, "global_batch": 1024, "gpus": 1024,
        "compile": True, "sp": True, "margin": 0.05, "tokens": 15 * 10**12, "recompute": {"full_layers": 20},
        "lora_targets": ["q_proj", "v_proj"], "method": "lora", "lora_rank": 8, "gpu": ["H100", "H200"], "offload": [],
        "optimizer": "adamw-8bit",
    }  # fmt: skip
    assert request.as_asked == asked
    assert request == load_request(asked)


def test_short_words_and_shorthands_are_keys() -> None:
    request = load_text_request({"model": "70B", "seq": "4k", "zero": "2", "n": "8", "max": "mb"})
    assert request.given() == {
        "model": "70B", "sequence_length": 4096, "gpus": 8, "shard": "gradients", "solve": "micro_batch",
    }  # fmt: skip


def test_objects_are_json_text() -> None:
    request = load_text_request({"model": '{"parameters": 7e9}', "gpu": '{"memory_bytes": 85e9}'})
    assert request.model == {"parameters": 7e9}
    assert request.gpu == {"memory_bytes": 85e9}


@pytest.mark.parametrize("text", ["{", '{"parameters": NaN}', '{"parameters": 1e9', "{'parameters': 1}", "[" * 5000])
def test_broken_json_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load_text_request({"model": text})
    assert [error.pointer for error in caught.value.errors] == ["/model"]


def test_the_same_key_under_two_names_must_have_one_value() -> None:
    assert load_text_request({"model": "70B", "seq": "8k", "sequence_length": "8192"}).sequence_length == 8192
    (error,) = refused(seq="8k", ctx="4k")
    assert error.pointer == "/sequence_length"
    assert error.given == "8192 and 4096"


def test_what_cannot_be_read_and_what_is_out_of_range_is_told_together() -> None:
    errors = refused(seq="8q", mb="0", sqe="8k", compile="maybe")
    assert {error.pointer for error in errors} == {"/sequence_length", "/micro_batch", "/sqe", "/compile"}
    assert next(error for error in errors if error.pointer == "/sqe").suggestions[0] == "seq"


def test_thousands_set_apart_are_answered_with_the_number() -> None:
    (error,) = refused(seq="8,192")
    assert error.suggestions == ("8192",)


def test_full_width_digits_and_no_break_spaces_are_read() -> None:
    assert load_text_request({"model": "70B", "seq": "\u00a0８ｋ "}).sequence_length == 8192


def test_a_command_may_be_given_as_text() -> None:
    assert load_text_request({"command": "70B seq=8k"}).sequence_length == 8192


def test_thousands_of_combining_marks_are_refused_before_they_are_put_in_order() -> None:
    with pytest.raises(InvalidInput, match="combining marks"):
        load_text_request({"model": "a" + "\u0301\u0323" * 100_000})
