"""A message reaches the person in the richest form that Slack takes, and the log knows when it did not."""

from __future__ import annotations

from typing import Any

import pytest
from slack_sdk import WebClient
from structlog.testing import capture_logs

from bot.blocks.chart import Chart
from bot.blocks.elements import section
from bot.blocks.message import Message
from bot.blocks.table import Table
from bot.delivery import Conversation, Courier, Fate, ResponseUrl, judge
from tests.support.fake_slack import BOT_TOKEN, RATE_LIMITED, FakeSlack, Scripted

TABLE = Table(("Term", "Bytes"), (("weights", "4.1 GiB"),))
MESSAGE = Message(text="the answer", parts=(section("hello"), TABLE), metadata={"event_type": "x", "event_payload": {}})
REFUSED = Scripted(400, "invalid_blocks")


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def courier(slept: list[float]) -> Courier:
    return Courier(sleep=slept.append)


def client(slack: FakeSlack, token: str = BOT_TOKEN) -> WebClient:
    return WebClient(token=token, base_url=f"{slack.api_url}/")


def kinds(payload: dict[str, list[dict[str, str]]]) -> list[str]:
    return [block["type"] for block in payload.get("blocks", [])]


def test_the_first_attempt_has_the_table(slack: FakeSlack, courier: Courier) -> None:
    url = slack.response_url()
    assert courier.deliver(MESSAGE, ResponseUrl(url), request_id="i")
    [seen] = slack.messages(url)
    assert kinds(seen) == ["section", "table"] and seen["text"] == "the answer"


@pytest.mark.parametrize(
    ("refusals", "expected"), [(1, ["section", "rich_text"]), (2, [])], ids=["table as text", "text only"]
)
def test_refused_blocks_are_said_more_plainly(
    slack: FakeSlack, courier: Courier, refusals: int, expected: list[str]
) -> None:
    url = slack.response_url()
    slack.script(url, *[REFUSED] * refusals)
    assert courier.deliver(MESSAGE, ResponseUrl(url), request_id="i")
    assert kinds(slack.messages(url)[-1]) == expected


CHARTED = Message(text="the answer", parts=(section("hello"), TABLE, Chart("pie", (("weights", 2**30),))))


def test_a_chart_is_tried_first_and_never_again_where_slack_does_not_draw_it(
    slack: FakeSlack, courier: Courier
) -> None:
    url = slack.response_url()
    slack.script(url, REFUSED)
    for _ in range(2):
        assert courier.deliver(CHARTED, ResponseUrl(url), request_id="i")
    sent = [kinds(one.body) for one in slack.received]
    assert sent == [["section", "table", "data_visualization"], ["section", "table"], ["section", "table"]]


def test_charts_go_on_where_slack_draws_them(slack: FakeSlack, courier: Courier) -> None:
    url = slack.response_url()
    for _ in range(2):
        assert courier.deliver(CHARTED, ResponseUrl(url), request_id="i")
    assert [kinds(seen)[-1] for seen in slack.messages(url)] == ["data_visualization"] * 2


def test_charts_are_not_given_up_because_of_a_message_that_is_refused_in_every_form(
    slack: FakeSlack, courier: Courier
) -> None:
    url = slack.response_url()
    slack.script(url, REFUSED, REFUSED, REFUSED, REFUSED)
    assert not courier.deliver(CHARTED, ResponseUrl(url), request_id="i")
    assert courier.deliver(CHARTED, ResponseUrl(url), request_id="i")
    assert kinds(slack.messages(url)[0])[-1] == "data_visualization"


def test_a_rate_limit_is_waited_for_as_long_as_slack_says(
    slack: FakeSlack, courier: Courier, slept: list[float]
) -> None:
    url = slack.response_url()
    slack.script(url, Scripted(429, "{}", {"Retry-After": "7"}))
    assert courier.deliver(MESSAGE, ResponseUrl(url), request_id="i")
    assert slept == [7.0]


@pytest.mark.parametrize("trouble", [Scripted(reset=True), Scripted(500, "oops"), Scripted(503, "oops")])
def test_a_broken_connection_or_a_failing_slack_is_tried_again(
    slack: FakeSlack, courier: Courier, trouble: Scripted
) -> None:
    url = slack.response_url()
    slack.script(url, trouble, trouble)
    assert courier.deliver(MESSAGE, ResponseUrl(url), request_id="i")


@pytest.mark.parametrize("gone", [{"used": 5}, {"expired": True}], ids=["used_url", "expired_url"])
def test_an_address_that_is_gone_gives_way_to_a_direct_message(
    slack: FakeSlack, courier: Courier, gone: dict[str, Any]
) -> None:
    url = slack.response_url(**gone)
    with capture_logs() as entries:
        delivered = courier.deliver(
            MESSAGE, ResponseUrl(url), Conversation(client(slack), "U0USER"), request_id="k7q2m9xw"
        )
    assert delivered
    [posted] = slack.calls("chat.postMessage")
    assert posted["channel"] == "U0USER" and posted["metadata"] == MESSAGE.metadata
    assert entries[0]["reason"].startswith("404") and entries[0]["id"] == "k7q2m9xw"


def test_what_reaches_nobody_is_an_error_in_the_log_with_the_id(slack: FakeSlack, courier: Courier) -> None:
    with capture_logs() as entries:
        delivered = courier.deliver(
            MESSAGE,
            ResponseUrl(slack.response_url(expired=True)),
            Conversation(client(slack, "xoxb-revoked"), "U0USER"),
            request_id="k7q2m9xw",
        )
    assert not delivered
    assert entries[-1] == {"event": "message_lost", "id": "k7q2m9xw", "log_level": "error"}
    assert [entry["reason"] for entry in entries[:-1]] == ["404 expired_url", "invalid_auth"]


def test_a_slack_that_is_down_ends_after_a_few_attempts(courier: Courier, slept: list[float]) -> None:
    assert not courier.deliver(MESSAGE, ResponseUrl("http://127.0.0.1:9/commands/x"), request_id="i")
    assert slept == [0.5] * 3


def test_a_rate_limit_without_a_time_waits_a_second() -> None:
    assert judge(429, "", None).wait_s == 1.0
    assert judge(429, "", "soon").wait_s == 1.0
    assert judge(RATE_LIMITED.status, RATE_LIMITED.body, "1").fate is Fate.LATER


def test_an_ok_status_with_a_refusal_in_the_body_is_no_delivery() -> None:
    assert judge(200, '{"ok":false,"error":"no_permission"}', None).fate is Fate.GONE
    assert judge(200, '{"ok":true}', None).fate is Fate.DELIVERED
    assert judge(200, "ok", None).fate is Fate.DELIVERED


def test_a_message_in_a_thread_stays_in_it(slack: FakeSlack, courier: Courier) -> None:
    assert courier.deliver(MESSAGE, Conversation(client(slack), "C0CHANNEL", "12.34"), request_id="i")
    assert slack.calls("chat.postMessage")[0]["thread_ts"] == "12.34"


def test_the_log_never_has_the_message(slack: FakeSlack, courier: Courier) -> None:
    with capture_logs() as entries:
        courier.deliver(MESSAGE, ResponseUrl(slack.response_url(expired=True)), request_id="i")
    assert "the answer" not in str(entries)
