"""Nobody's text pings a channel, breaks the formatting or turns the reading direction."""

from __future__ import annotations

import pytest

from bot.blocks import text


@pytest.mark.parametrize("typed", ["<!channel>", "<@U123>", "<https://evil.example|your bank>", "a & b"])
def test_markup_of_slack_becomes_plain_characters(typed: str) -> None:
    assert not set("<>") & set(text.escape(typed))
    assert text.escape("<!channel> & co") == "&lt;!channel&gt; &amp; co"


def test_a_code_span_cannot_be_left() -> None:
    assert text.code("`*x*` <!here>") == "`ˋ*x*ˋ &lt;!here&gt;`"


def test_what_does_not_show_is_taken_out() -> None:
    assert text.clean("70B\u200b seq=8k\u202e gpu=H100\u0000\nmb=2") == "70B seq=8k gpu=H100 mb=2"


def test_letters_of_every_script_and_emoji_stay() -> None:
    assert text.clean("七十亿 סבעים 🦙") == "七十亿 סבעים 🦙"


def test_cutting_never_leaves_half_an_entity_or_half_a_link() -> None:
    assert text.clip_mrkdwn("abc &amp; def", 8) == "abc…"
    assert text.clip_mrkdwn("see <https://example.org|here> now", 20) == "see…"
    assert text.clip_mrkdwn("short", 20) == "short"


def test_a_cut_text_has_the_length_that_was_asked() -> None:
    assert text.clip("x" * 30, 10) == "x" * 9 + "…"


def test_our_own_mrkdwn_reads_well_without_formatting() -> None:
    assert text.plain("*Floor:* `seq=4096` &amp; <https://example.org|open>") == "Floor: seq=4096 & open"


def test_a_link_label_cannot_end_the_link() -> None:
    assert (
        text.link("https://example.org/?a|b", "x> <!channel>") == "<https://example.org/?a%7Cb|x&gt; &lt;!channel&gt;>"
    )
