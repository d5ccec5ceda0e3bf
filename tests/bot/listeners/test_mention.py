"""In a thread, where commands cannot be typed, a mention says the same words and is answered in the thread."""

from __future__ import annotations

from typing import Any

import pytest

from bot.listeners.mention import words_of
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService, problem
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller

MENTION = {"type": "app_mention", "user": "U0USER", "channel": "C0CHANNEL", "ts": "12.34"}


def mention(text: str, **more: Any) -> dict[str, Any]:
    return {**MENTION, "text": text, **more}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<@U0BOT> 70B seq=8k", "70B seq=8k"),
        ("hey <@U0BOT|trainmem> 70B", "hey   70B"),
        ("<@U0BOT> <http://llama-3.ai|llama-3.ai> seq=8k", "llama-3.ai seq=8k"),
        ("<@U0BOT> <https://hf.co/meta-llama/Llama-3.1-70B>", "https://hf.co/meta-llama/Llama-3.1-70B"),
        ("<@U0BOT> a &amp; b &lt;c&gt;", "a & b <c>"),
    ],
)
def test_the_words_of_a_mention_are_what_was_typed(text: str, words: str) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(("more", "thread"), [({}, "12.34"), ({"thread_ts": "1.1"}, "1.1")])
def test_the_answer_is_in_the_thread(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, more: dict[str, str], thread: str
) -> None:
    caller.event(mention("<@U0BOT> 70B seq=8k", **more))
    slack.wait_for(lambda fake: fake.calls("chat.postMessage"))
    [posted] = slack.calls("chat.postMessage")
    assert (posted["channel"], posted["thread_ts"]) == ("C0CHANNEL", thread)
    assert service.sizings_asked()[0].body == {"command": "70B seq=8k"}
    assert service.sizings_asked()[0].headers["trainmem-on-behalf-of"] == "slack:T0TEAM/U0USER"


def test_a_mistake_is_told_to_the_asker_alone(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    service.answers["POST /api/v1/sizings"] = problem(422, "wrong", {"pointer": "/gpu", "detail": "no such GPU"})
    caller.event(mention("<@U0BOT> 70B gpu=x"))
    slack.wait_for(lambda fake: fake.calls("chat.postEphemeral"))
    [posted] = slack.calls("chat.postEphemeral")
    assert (posted["user"], posted["thread_ts"]) == ("U0USER", "12.34")
    assert slack.calls("chat.postMessage") == []


def test_the_bots_own_words_are_not_answered(service: FakeService, running: Running) -> None:
    assert running.caller.event(mention("<@U0BOT> 70B", user="U0BOT", bot_id="B0BOT")).status == 200
    running.close()
    assert service.asked == []


def test_an_event_that_slack_delivers_again_is_answered_once(slack: FakeSlack, running: Running) -> None:
    for _ in range(2):
        assert running.caller.event(mention("<@U0BOT> 70B"), event_id="Ev0SAME").status == 200
    running.close()
    assert len(slack.calls("chat.postMessage")) == 1
