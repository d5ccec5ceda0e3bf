"""Every error of ours has a place in the tree and a problem document."""

from __future__ import annotations

import pytest

from service import errors
from service.errors import (
    FieldError,
    InvalidInput,
    NotFound,
    SettingError,
    Unavailable,
    problem_document,
    problem_kinds,
)


def test_invalid_input_becomes_a_problem_with_all_errors() -> None:
    first = FieldError("/tp", "tp is out of range", "0", "1 to 4,096", ("1",))
    second = FieldError("/gpu", "no such GPU")
    assert problem_document(InvalidInput([first, second]), instance="/api/v1/sizings", request_id="r-1") == {
        "type": "/docs/problems#invalid-request",
        "title": "The request cannot be answered as it was asked",
        "status": 422,
        "detail": "tp is out of range; no such GPU",
        "instance": "/api/v1/sizings",
        "request_id": "r-1",
        "errors": [
            {"pointer": "/tp", "detail": "tp is out of range", "given": "0", "allowed": "1 to 4,096",
             "suggestions": ["1"], "position": None},
            {"pointer": "/gpu", "detail": "no such GPU", "given": None, "allowed": None,
             "suggestions": [], "position": None},
        ],
    }  # fmt: skip


def test_a_service_error_becomes_a_problem() -> None:
    problem = problem_document(NotFound("No sizing has the id sz_1."))
    assert (problem["status"], problem["type"]) == (404, "/docs/problems#not-found")
    assert problem["instance"] is None and problem["request_id"] is None


def test_unavailable_says_when_to_come_back() -> None:
    assert Unavailable("later", retry_after_s=7).headers == {"Retry-After": "7"}


def test_what_never_reaches_a_caller_has_no_document() -> None:
    with pytest.raises(TypeError, match="SettingError"):
        problem_document(SettingError("x"))


def test_kinds_have_statuses_and_names_of_their_own() -> None:
    kinds = problem_kinds()
    assert len({slug for _, slug, _, _ in kinds}) == len(kinds)
    assert all(400 <= status < 600 and title and meaning for status, _, title, meaning in kinds)
    assert {status for status, *_ in kinds} == {400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503}


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = errors.__doc__ or ""
    for kind in errors.ServiceError.__subclasses__():
        assert any(kind.__name__ in line and str(kind.status) in line.split() for line in drawn.splitlines()), kind
