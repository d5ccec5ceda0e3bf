"""Cursors come back as they were given out, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import cursors
from service.errors import InvalidInput


@given(st.integers(), st.text(st.characters(blacklist_categories=["Cs"])))
def test_a_cursor_round_trips(number: int, text: str) -> None:
    cursor = cursors.encode(number, text)
    assert cursors.decode(cursor, int, str) == (number, text)
    assert cursor.replace("-", "").replace("_", "").isalnum()  # nothing to escape in an address


@given(st.text(max_size=60))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        cursors.decode(text, int, str, int)
    assert refused.value.errors[0].pointer == "/cursor"


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidInput):
        cursors.decode(cursors.encode("sz_1", 5), int, str)
    with pytest.raises(InvalidInput):
        cursors.decode(cursors.encode(5, "sz_1", 6), int, str)
    with pytest.raises(InvalidInput):
        cursors.decode(cursors.encode(True, "sz_1"), int, str)
