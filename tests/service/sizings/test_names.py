"""Wrong names are told together with everything else that is wrong, in one refusal."""

from __future__ import annotations

from typing import Any

import pytest

from service.catalog.facts import packaged
from service.engine.errors import InvalidInput
from service.requests.schemas import load_request
from service.sizings.names import read_request, resolve_names


def refused(mapping: Any) -> dict[str, tuple[str, ...]]:
    with pytest.raises(InvalidInput) as caught:
        read_request(mapping, packaged())
    return {error.pointer: error.suggestions for error in caught.value.errors}


def test_a_wrong_word_does_not_hide_a_wrong_name() -> None:
    wrong = refused({"model": "lama-3.1-70b", "gpu": "H1000", "stack": "megatrom"})
    assert set(wrong) == {"/model", "/gpu", "/stack"}
    assert "megatron" in wrong["/stack"]
    assert any("llama-3.1-70b" in suggestion for suggestion in wrong["/model"])


def test_a_name_of_the_wrong_type_is_told_once() -> None:
    wrong = refused({"model": 70, "gpu": "H100", "sequence_length": "8k"})
    assert set(wrong) == {"/model", "/sequence_length"}


@pytest.mark.parametrize("body", [None, [], "70B", 3])
def test_what_is_no_object_is_refused_as_that(body: Any) -> None:
    assert set(refused(body)) == {""}


def test_model_and_gpu_are_refused_together() -> None:
    request = load_request({"model": "nothing-like-it", "gpu": "H1000"})
    with pytest.raises(InvalidInput) as caught:
        resolve_names(request, packaged())
    assert {error.pointer for error in caught.value.errors} == {"/model", "/gpu"}
