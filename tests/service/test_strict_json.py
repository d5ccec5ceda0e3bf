"""JSON that other readers would understand differently, or a database could not keep, is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import MalformedBody
from service.strict_json import DEEPEST, loads

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_plain_json_is_read_as_it_is(value: object) -> None:
    assert loads(json.dumps(value)) == value


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_anything_else_is_refused_and_nothing_is_raised_but_that(text: str | bytes) -> None:
    try:
        loads(text)
    except MalformedBody as error:
        assert error.status == 400


def test_depth_is_bounded_exactly() -> None:
    deepest = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert loads(deepest)
    with pytest.raises(MalformedBody, match="nested deeper"):
        loads(f"[[{deepest}]]")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": {"b": 1, "b": 2}}', "names b twice"),
        ('"\\ud800"', "surrogate"),
        ('{"\\udc00": 1}', "surrogate"),
        ('["a\\u0000"]', r"U\+0000"),
        ("9" * 5_000, "not JSON"),
    ],
)
def test_the_reason_is_said(text: str, reason: str) -> None:
    with pytest.raises(MalformedBody, match=reason):
        loads(text)
