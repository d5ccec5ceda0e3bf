"""A decision is made in a form over the answer, judged by the service, and heard by everybody who saw the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.blocks import decision, presses
from tests.support.fake_service import FakeService, Told, problem, sizing
from tests.support.fake_slack import FakeSlack
from tests.support.slack_block_kit import problems
from tests.support.slack_requests import Answer, SlackCaller

ID = "sz_01jdz6q8w2x4y6m3k7"
PATH = f"/api/v1/sizings/{ID}/decisions"
MADE = {
    "id": "dc_1",
    "sizing_id": ID,
    "decision": "override",
    "gpus_granted": 8,
    "gpu": "h200-sxm-141gb",
    "reason": "half of the pool\nis taken",
    "decided_by": "slack:T0TEAM/U0USER",
    "audit": {"seq": 43},
}


@pytest.fixture(autouse=True)
def answers(service: FakeService) -> None:
    service.answers |= {
        f"GET /api/v1/sizings/{ID}": Told(200, sizing("sizing-70b-tight")),
        f"POST {PATH}": Told(201, MADE),
        f"GET {PATH}": Told(200, {"items": [], "next": None}),
    }


def open_form(slack: FakeSlack, caller: SlackCaller, url: str, *, ephemeral: bool = True) -> dict[str, Any]:
    caller.press({"action_id": presses.DECIDE}, url, block_id=presses.block_id(ID, "next"), ephemeral=ephemeral)
    slack.wait_for(lambda fake: fake.calls("views.update"))
    return dict(slack.calls("views.update")[-1]["view"])


def submit(caller: SlackCaller, view: dict[str, Any], **fields: str) -> Answer:
    chosen = ("decision", "gpu")
    values = {
        name: {"x": {"selected_option": {"value": fields[name]} if name in fields else None}}
        if name in chosen
        else {"x": {"value": fields.get(name)}}
        for name in decision.FIELDS
    }
    return caller.submit(view, values)


def asked(service: FakeService) -> list[Any]:
    return [one.body for one in service.asked if (one.method, one.path) == ("POST", PATH)]


def test_the_form_says_what_is_decided_on(slack: FakeSlack, caller: SlackCaller) -> None:
    view = open_form(slack, caller, slack.response_url())
    assert problems(view, "modal") == []
    assert "*Llama 3.1 70B*\n⚠️ 16 × H100 (2 nodes): 71.6 of 75.2 GiB" in view["blocks"][0]["text"]["text"]
    assert view["blocks"][1]["element"]["initial_option"]["value"] == "approve"


def test_an_approval_needs_nothing_else(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    assert submit(caller, open_form(slack, caller, slack.response_url()), decision="approve").body == ""
    assert asked(service) == [{"decision": "approve"}]


def test_what_is_granted_and_why_reaches_the_service_and_the_channel_in_which_it_was_shared(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    view = open_form(slack, caller, url, ephemeral=False)
    submit(caller, view, decision="override", gpus_granted="8", gpu="h200", reason=" half of the pool\nis taken ")
    message = slack.message(url)
    assert asked(service) == [
        {"decision": "override", "gpus_granted": 8, "gpu": "h200", "reason": "half of the pool\nis taken"}
    ]
    assert message["response_type"] == "in_channel"
    assert message["blocks"][0]["text"]["text"] == (
        "✅ *Granted otherwise* by <@U0USER>: *8 × h200-sxm-141gb* for Llama 3.1 70B\n>half of the pool is taken"
    )
    assert "audit #43" in json.dumps(message)


def test_under_an_answer_of_ones_own_the_decision_is_told_privately(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    submit(caller, open_form(slack, caller, url), decision="approve")
    assert slack.message(url)["response_type"] == "ephemeral"


def test_what_is_wrong_is_said_at_the_field_and_who_may_not_is_told_why(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    view = open_form(slack, caller, slack.response_url())
    wrong = {"pointer": "/reason", "detail": "reason is needed to reject"}
    service.answers[f"POST {PATH}"] = problem(422, "One thing is wrong.", wrong)
    assert submit(caller, view, decision="reject").json()["errors"] == {"reason": "reason is needed to reject."}
    service.answers[f"POST {PATH}"] = problem(403, "slack:T0TEAM/U0USER may not decide.")
    refused = submit(caller, view, decision="approve").json()
    assert refused["response_action"] == "errors"
    assert refused["errors"]["decision"].startswith("slack:T0TEAM/U0USER may not decide. (id ")


def test_a_service_that_fails_keeps_the_form_open(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    view = open_form(slack, caller, slack.response_url())
    service.answers[f"POST {PATH}"] = problem(500, "broken")
    assert "failed on this question" in submit(caller, view, decision="approve").json()["errors"]["decision"]


def test_the_decision_that_stands_is_shown_with_the_answer(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    earlier = {**MADE, "decision": "reject", "gpus_granted": None, "gpu": None}
    service.answers[f"GET {PATH}"] = Told(200, {"items": [earlier, MADE], "next": None})
    url = slack.response_url()
    caller.press({"action_id": presses.SHOW, "value": ID}, url)
    message = slack.message(url)
    assert "*Granted otherwise* by <@U0USER>" in json.dumps(message) and "Rejected" not in json.dumps(message)
    assert "Granted otherwise by @U0USER" in message["text"]


def test_an_answer_is_shown_although_its_decisions_cannot_be_read(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers[f"GET {PATH}"] = problem(403, "not you")
    url = slack.response_url()
    caller.press({"action_id": presses.SHOW, "value": ID}, url)
    assert slack.message(url)["text"].startswith("Fits, but tight")
