"""The help names every word of the command once, with an example that starts the product's story."""

from __future__ import annotations

from bot.blocks.help import help_message
from tests.support.slack_block_kit import problems


def test_the_help_is_taken_by_slack_in_every_form() -> None:
    assert [problems(payload) for payload in help_message().payloads()] == [[], []]


def test_the_first_example_is_the_one_of_the_readme() -> None:
    assert "`/trainmem 70B seq=8k mb=2 gpu=H100`" in str(help_message().payload()["blocks"])
