"""An error says what was read, what would have been right, and an id that the log has too; nothing of the cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.blocks.problems import corrected_text, problem_message
from bot.service_errors import Busy, Fault, FieldProblem, NotFound, NotKnown, Refused, Rejected, TimedOut, Unreachable
from tests.support.slack_block_kit import problems

UNKNOWN_GPU = FieldProblem(
    pointer="/gpu", detail="There is no GPU called H1000.", given="H1000", suggestions=("H100", "H200")
)


def rejected(*errors: FieldProblem) -> Rejected:
    return Rejected("Something in the request cannot be.", errors=errors, cause="422")


def shown(error: Exception, read: str = "70B gpu=H1000") -> str:
    return json.dumps(problem_message(error, read=read, request_id="k7q2m9xw").payload(), ensure_ascii=False)


def formatted(node: Any) -> list[str]:
    """Every text in which Slack would look for mentions."""
    if isinstance(node, list):
        return [text for item in node for text in formatted(item)]
    if not isinstance(node, dict):
        return []
    own = [node["text"]] if isinstance(node.get("text"), str) and node.get("type") in ("mrkdwn", None) else []
    return own + [text for item in node.values() for text in formatted(item)]


def buttons(error: Exception, read: str) -> list[dict[str, Any]]:
    blocks = problem_message(error, read=read, request_id="k7q2m9xw").payload()["blocks"]
    return [element for block in blocks if block["type"] == "actions" for element in block["elements"]]


def test_a_wrong_spelling_is_named_with_the_nearest_right_ones_and_an_example() -> None:
    text = shown(rejected(UNKNOWN_GPU))
    assert "I read `70B gpu=H1000`" in text
    assert "`gpu`: There is no GPU called H1000. Did you mean `H100`, `H200`?" in text
    assert "`/trainmem 70B seq=8k mb=2 gpu=H100`" in text
    assert "Nothing was recorded. id `k7q2m9xw`" in text


def test_the_nearest_spellings_are_one_press_away() -> None:
    found = buttons(rejected(UNKNOWN_GPU), "70B gpu=H1000 mb=2")
    assert [(one["text"]["text"], one["value"]) for one in found] == [
        ("Use H100", "70B gpu=H100 mb=2"),
        ("Use H200", "70B gpu=H200 mb=2"),
    ]


def test_a_long_list_of_what_is_allowed_gives_way_to_the_nearest_spellings() -> None:
    unknown = FieldProblem("/sq", "character 4: sq is not a key", "sq", ", ".join(["model"] * 40), ("seq", "s"))
    assert "• `sq`: sq is not a key. Did you mean `seq`, `s`?" in shown(rejected(unknown), "70B sq=8k")


def test_two_things_wrong_are_both_said_and_no_button_corrects_only_one() -> None:
    errors = (
        UNKNOWN_GPU,
        FieldProblem(pointer="/tp", detail="64 heads cannot be split.", given="3", allowed="1, 2, 4"),
    )
    assert "`tp`: 64 heads cannot be split. (read `3`; allowed: 1, 2, 4)" in shown(rejected(*errors))
    assert buttons(rejected(*errors), "70B gpu=H1000 tp=3") == []


@pytest.mark.parametrize(
    ("read", "given", "suggestion", "corrected"),
    [
        ("70B gpu=H1000", "H1000", "H100", "70B gpu=H100"),
        ("70B GPU=h1000 mb=2", "H1000", "H100", "70B GPU=H100 mb=2"),
        ("70B sq=8k", "sq", "seq", "70B seq=8k"),
        ("lama-70b tp=70", "lama-70b", "llama-70b", "llama-70b tp=70"),
        ("70B tp=8 gpus=12", "8", "tp=6", "70B tp=6 gpus=12"),
        ("70B tp8 gpus=8", "8", "tp=4", "70B tp=4 gpus=8"),
        ("70B tp=8 gpus=12", "8", "gpus=16", None),
        ("H1000 H1000", "H1000", "H100", None),
        ("gpu=XH1000", "H1000", "H100", None),
        ("70B", None, "H100", None),
    ],
)
def test_only_the_one_plain_place_is_corrected(read: str, given: str | None, suggestion: str, corrected: str) -> None:
    assert corrected_text(read, given, suggestion) == corrected


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Unreachable("x", cause="secret cause"), "cannot be reached right now"),
        (TimedOut(10.0, cause="secret cause"), "did not answer within 10 seconds"),
        (Busy("x", retry_after_s=7.2, cause="secret cause"), "ask again in 8 seconds"),
        (NotKnown("The token slack-bot expired", cause="secret cause"), "does not know me"),
        (Refused("Token is not allowed to act for others.", cause="secret cause"), "Token is not allowed"),
        (NotFound("There is no sizing sz_1.", cause="secret cause"), "There is no sizing sz_1."),
        (Fault("x", cause="secret cause"), "failed on this question"),
        (ZeroDivisionError("secret cause"), "I failed on this"),
    ],
)
def test_every_failure_is_a_sentence_with_an_id_and_without_the_cause(error: Exception, words: str) -> None:
    text = shown(error)
    assert words in text and "k7q2m9xw" in text and "secret cause" not in text


@pytest.mark.parametrize("read", ["", "<!channel> `x`", "🦙" * 1000, "\u202egpu=H1000\u202c", "x" * 4000, "a\u200bb"])
def test_whatever_was_typed_the_message_is_taken_and_pings_nobody(read: str) -> None:
    error = rejected(FieldProblem("/gpu", read or "x", given=read, allowed=read, suggestions=(read or "x",)))
    for payload in problem_message(error, read=read, request_id="k7q2m9xw").payloads():
        assert problems(payload) == []
        assert not any("<!" in text for text in formatted(payload))


def test_a_hundred_errors_do_not_burst_the_message() -> None:
    error = rejected(*[FieldProblem(f"/k{number}", "x" * 900, allowed="y" * 900) for number in range(100)])
    assert [problems(payload) for payload in problem_message(error, read="z", request_id="i").payloads()] == [[], []]
