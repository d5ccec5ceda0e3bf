"""A table that Slack takes, and the same rows as text where it does not."""

from __future__ import annotations

from bot.blocks.table import Table
from tests.support.slack_block_kit import problems


def test_columns_of_the_text_are_padded_and_numbers_stand_right() -> None:
    table = Table(("Term", "Bytes"), (("weights", "4.1"), ("all", "42.9")), numeric=frozenset({1}))
    assert table.text() == "Term     Bytes\nweights    4.1\nall       42.9"


def test_an_empty_cell_which_slack_refuses_becomes_a_dash() -> None:
    block = Table(("a",), (("",),)).block()
    assert block["rows"][1][0]["text"] == "–"
    assert problems({"text": "t", "blocks": [block]}) == []


def test_number_and_unit_stay_on_one_line_in_a_narrow_column() -> None:
    block = Table(("a",), (("131.4 GiB (141.1 GB)",),)).block()
    assert block["rows"][1][0]["text"] == "131.4\u00a0GiB (141.1\u00a0GB)"


def test_too_many_rows_are_cut_and_counted() -> None:
    block = Table(("a", "b"), tuple((str(number), "x") for number in range(500))).block()
    assert problems({"text": "t", "blocks": [block]}) == []
    assert len(block["rows"]) == 100
    assert block["rows"][-1][0]["text"] == "… 402 more"


def test_too_many_characters_are_cut_and_counted() -> None:
    block = Table(("a", "b"), tuple(("x" * 200, "y" * 200) for _ in range(90))).block()
    assert problems({"text": "t", "blocks": [block]}) == []
    assert block["rows"][-1][0]["text"].startswith("… ")
