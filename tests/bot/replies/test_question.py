"""A question can be asked again with one key changed, however it was asked the first time."""

from __future__ import annotations

from bot.replies.question import request_of
from tests.support.fake_service import sizing


def test_a_flat_request_is_taken_as_it_was_sent() -> None:
    answer = sizing()
    assert request_of(answer) == {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"}


def test_a_command_becomes_what_it_gave_and_the_model_it_took() -> None:
    answer = sizing("sizing-70b-tight")
    assert answer["request"] == {"command": "70B seq=8k mb=2 gpu=H100"}
    assert request_of(answer) == {"model": "llama-3.1-70b", "gpu": "h100", "micro_batch": 2, "sequence_length": 8192}


def test_a_derived_shape_stands_by_its_parameter_count() -> None:
    answer = sizing("sizing-70b-tight")
    answer["model"] |= {"id": "derived", "parameters": 23_000_000_000}
    assert request_of(answer)["model"] == {"parameters": 23_000_000_000}
