"""Builders cut what is too long to what Slack takes."""

from __future__ import annotations

import pytest

from bot.blocks import elements
from tests.support.slack_block_kit import problems

LONG = "x" * 10_000


def test_every_builder_cuts_to_the_limit() -> None:
    blocks = [
        elements.header(LONG),
        elements.section(LONG),
        elements.fields([(LONG, LONG)] * 20),
        elements.context(*[LONG] * 20),
        elements.actions([elements.button(LONG, f"a{number}", label=LONG, url=LONG) for number in range(40)]),
        elements.preformatted(LONG),
    ]
    assert problems({"text": "t", "blocks": blocks}) == []


def test_an_empty_text_which_slack_refuses_becomes_a_space() -> None:
    assert (
        problems({"text": "t", "blocks": [elements.header(""), elements.section(""), elements.preformatted("")]}) == []
    )


def test_a_button_value_is_never_cut() -> None:
    with pytest.raises(ValueError, match="10000 characters"):
        elements.button("x", "a", value=LONG)
