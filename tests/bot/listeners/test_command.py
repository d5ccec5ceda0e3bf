"""The first whole path in Slack: a command, an acknowledgement at once, an answer through its response_url."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event

import pytest
from structlog.testing import capture_logs

from bot.settings import Settings
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService, Told, problem, sizing
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller


def test_a_sizing_is_acknowledged_at_once_and_answered_privately(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    hold = Event()
    service.answers["POST /api/v1/sizings"] = Told(201, sizing(), wait_for=hold)
    url = slack.response_url()

    acknowledged = caller.command("70B seq=8k mb=2 gpu=H100", url)

    assert (acknowledged.status, acknowledged.body) == (200, "")
    assert slack.messages(url) == []
    hold.set()
    message = slack.message(url)
    assert message["response_type"] == "ephemeral"
    assert message["blocks"][0]["text"]["text"].startswith("✅ 32 × H100 (4 nodes): 42 of 75 GiB per GPU")


def test_the_service_hears_the_typed_words_who_asked_and_a_key(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    caller.command("70B seq=8k mb=2 gpu=H100", url)
    slack.message(url)

    [asked] = service.sizings_asked()
    assert asked.body == {"command": "70B seq=8k mb=2 gpu=H100"}
    assert asked.headers["trainmem-on-behalf-of"] == "slack:T0TEAM/U0USER"
    assert asked.headers["trainmem-channel"] == "C0CHANNEL"
    assert asked.headers["idempotency-key"].startswith("slack-")


def test_the_same_press_delivered_twice_asks_with_the_same_key(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    urls = [slack.response_url() for _ in range(3)]
    caller.command("70B", urls[0], trigger_id="1.2.first")
    caller.command("70B", urls[1], trigger_id="1.2.first")
    caller.command("70B", urls[2], trigger_id="1.2.second")
    for url in urls:
        slack.message(url)

    keys = [asked.headers["idempotency-key"] for asked in service.sizings_asked()]
    assert len(keys) == 3 and len(set(keys)) == 2


@pytest.mark.parametrize("text", ["help", "HELP", "  help me", "\u200bhelp"])
def test_help_is_answered_without_asking_the_service(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, text: str
) -> None:
    url = slack.response_url()
    caller.command(text, url)
    assert "What does a training run need?" in str(slack.message(url)["blocks"][0])
    assert service.asked == []


def test_a_wrong_word_is_answered_with_the_nearest_spelling(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    wrong = {"pointer": "/gpu", "detail": "There is no GPU called H1000.", "given": "H1000", "suggestions": ["H100"]}
    service.answers["POST /api/v1/sizings"] = problem(422, "One thing is wrong.", wrong)
    url = slack.response_url()
    caller.command("70B gpu=H1000", url)
    message = slack.message(url)
    assert "Did you mean H100?" in message["text"]
    assert message["response_type"] == "ephemeral"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Told(0, None, reset=True), "cannot be reached right now"),
        (problem(500, "broken"), "failed on this question"),
        (problem(403, "You may not."), "does not let me ask for you: You may not."),
        (problem(429, "slow down", Retry_After="60"), "ask again in 60 seconds"),
        (Told(201, {"id": "sz_1"}), "I failed on this"),
    ],
    ids=["unreachable", "failing", "refusing", "busy", "not what the contract says"],
)
def test_whatever_fails_the_person_gets_an_id_that_the_log_has_with_the_cause(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, told: Told, words: str
) -> None:
    service.answers["POST /api/v1/sizings"] = told
    url = slack.response_url()
    with capture_logs() as entries:
        caller.command("70B", url)
        text = slack.message(url)["text"]
    assert words in text
    [entry] = [entry for entry in entries if entry["log_level"] == "error"]
    assert f"(id {entry['id']})" in text
    assert "/api/v1/sizings" in entry.get("cause", "") or entry.get("exc_info")
    if service.asked:
        assert service.asked[-1].headers["x-request-id"] == entry["id"]


def test_a_slow_service_is_given_up_with_a_clear_message(
    slack: FakeSlack, service: FakeService, settings: Settings, start_bot: Callable[[Settings], Running]
) -> None:
    never = Event()
    service.answers["POST /api/v1/sizings"] = Told(201, sizing(), wait_for=never)
    url = slack.response_url()
    start_bot(replace(settings, service_timeout_s=0.2)).caller.command("70B", url)
    assert "did not answer within 0.2 seconds" in slack.message(url)["text"]
    never.set()


@pytest.mark.parametrize(
    "text",
    ["<!channel> <@U1> `x`", "🦙" * 500, "x" * 4000, "\u202egpu=H100\u202c", "70\u200bB", "'\"“”‘", "--gpu=H100 — 70B"],
)
def test_whatever_is_typed_reaches_the_service_as_it_is(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, text: str
) -> None:
    url = slack.response_url()
    caller.command(text, url)
    slack.message(url)
    assert service.sizings_asked()[0].body == {"command": text}


def test_under_load_people_hear_at_once_that_their_answer_is_coming_and_get_it_in_order(
    slack: FakeSlack, service: FakeService, settings: Settings, start_bot: Callable[[Settings], Running]
) -> None:
    hold = Event()
    service.answers["POST /api/v1/sizings"] = Told(201, sizing(), wait_for=hold)
    caller = start_bot(replace(settings, answering=1, waiting=9, service_timeout_s=20.0)).caller
    urls = [slack.response_url() for _ in range(12)]

    heard = [caller.command(f"{number}B", url).body for number, url in enumerate(urls)]

    assert heard[:8] == [""] * 8
    assert [body.partition(".")[0] for body in heard[8:10]] == ["Busy, your answer is coming"] * 2
    assert heard[-1].startswith("So many questions are waiting")
    hold.set()
    for url in urls[:10]:
        slack.message(url)
    asked = [one.body["command"] for one in service.sizings_asked()]
    assert asked == [f"{number}B" for number in range(10)]


def test_an_expired_address_is_answered_by_direct_message(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    caller.command("70B", slack.response_url(expired=True))
    slack.wait_for(lambda fake: fake.calls("chat.postMessage"))
    [posted] = slack.calls("chat.postMessage")
    assert posted["channel"] == "U0USER"
    assert posted["metadata"]["event_payload"] == {"sizing_id": "sz_01jdz5m3k7q8w2x4y6"}
