"""The Home tab shows a person's own last sizings and a way to start, and opens without the service, too."""

from __future__ import annotations

from typing import Any

from bot.blocks import presses
from tests.support.fake_service import FakeService, Told, problem
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller

OPENED = {"type": "app_home_opened", "user": "U0USER", "channel": "D0USER", "tab": "home"}
SUMMARY = {
    "id": "sz_01jdz6q8w2x4y6m3k7",
    "recorded_at": "2026-11-30T20:52:07.000321Z",
    "model": {"id": "llama-3.1-70b"},
    "gpu": {"id": "h100"},
    "verdict": {"code": "tight", "text": "16 × H100 (2 nodes): 71.6 of 75.2 GiB per GPU; 8 are not enough"},
}


def published(slack: FakeSlack) -> dict[str, Any]:
    slack.wait_for(lambda fake: fake.calls("views.publish"))
    return dict(slack.calls("views.publish")[0])


def test_the_last_sizings_of_the_person_are_one_press_away(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers["GET /api/v1/sizings"] = Told(200, {"items": [SUMMARY], "next": None})
    caller.event(OPENED)
    home = published(slack)
    assert home["user_id"] == "U0USER"
    assert service.asked[-1].query == {"requester": "slack:T0TEAM/U0USER", "limit": "5"}
    accessories = [block["accessory"] for block in home["view"]["blocks"] if "accessory" in block]
    assert [(one["action_id"], one["value"]) for one in accessories] == [(presses.SHOW, SUMMARY["id"])]
    assert "⚠️ *llama-3.1-70b* 16 × H100 (2 nodes): 71.6 of 75.2 GiB per GPU\\n2026-11-30 20:52 UTC" in repr(home)


def test_a_person_who_never_asked_is_shown_how(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    service.answers["GET /api/v1/sizings"] = Told(200, {"items": [], "next": None})
    caller.event(OPENED)
    assert "You have not sized anything yet" in repr(published(slack))


def test_without_the_service_the_tab_opens_and_says_why(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers["GET /api/v1/sizings"] = problem(500, "broken")
    caller.event(OPENED)
    home = repr(published(slack))
    assert "failed on this question" in home and presses.NEW in home


def test_the_messages_tab_is_left_alone(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    assert caller.event({**OPENED, "tab": "messages"}).status == 200
    assert service.asked == []
