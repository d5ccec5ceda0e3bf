"""The form opens at once, knows what was asked, says what is wrong at the field, and asks like a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from bot.blocks import form, presses
from bot.settings import Settings
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService, Told, problem, sizing
from tests.support.fake_slack import FakeSlack, Scripted
from tests.support.slack_requests import SlackCaller

ID = "sz_01jdz6q8w2x4y6m3k7"
ROW = presses.block_id(ID, "next")


def opened(slack: FakeSlack, method: str = "views.open") -> dict[str, Any]:
    slack.wait_for(lambda fake: fake.calls(method))
    return dict(slack.calls(method)[0]["view"])


def initial(view: dict[str, Any]) -> dict[str, str]:
    elements = {block["block_id"]: block["element"] for block in view["blocks"]}
    values = {
        key: element.get("initial_value") or element.get("initial_option", {}).get("value")
        for key, element in elements.items()
    }
    return {key: value for key, value in values.items() if value}


def filled(**fields: str) -> dict[str, Any]:
    choices = ("model", "gpu", "method", "precision", "optimizer", "recompute")
    return {
        key: {"x": {"selected_option": {"value": value}} if key in choices else {"value": value}}
        for key, value in fields.items()
    }


def form_of(url: str = "") -> dict[str, Any]:
    return form.form_view({}, {"response_url": url} if url else {}) | {"hash": "1.a"}


def test_the_bare_command_opens_an_empty_form(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    assert (caller.command("", url).status, caller.command(" \u200b ", url).body) == (200, "")
    view = opened(slack)
    assert initial(view) == {}
    assert json.loads(view["private_metadata"]) == {"response_url": url}


def test_change_opens_at_once_and_then_holds_what_was_asked(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    hold = Event()
    answer = sizing("sizing-70b-tight")
    answer["inputs"] |= {
        "optimizer": {"value": "muon", "from": "request"},
        "shard": {"value": "optimizer", "from": "request"},
        "recompute": {"value": {"full_layers": 20}, "from": "request"},
    }
    service.answers[f"GET /api/v1/sizings/{ID}"] = Told(200, answer, wait_for=hold)
    caller.press({"action_id": presses.CHANGE}, slack.response_url(), block_id=ROW)
    assert "Reading what was asked" in str(opened(slack)["blocks"])
    hold.set()
    assert initial(opened(slack, "views.update")) == {
        "model": "llama-3.1-70b",
        "gpu": "h100",
        "sequence_length": "8192",
        "micro_batch": "2",
        "optimizer": "muon",
        "more": "ckpt=full:20 shard=optimizer",
    }


def test_a_model_of_ones_own_cannot_stand_in_a_form_and_that_is_said(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = Told(200, sizing() | {"request": {"model": {"parameters": 7e9}}})
    caller.press({"action_id": presses.CHANGE}, slack.response_url(), block_id=ROW)
    assert "a form cannot hold" in str(opened(slack, "views.update"))


def test_a_form_that_slack_does_not_open_any_more_is_told(slack: FakeSlack, caller: SlackCaller) -> None:
    slack.script("views.open", Scripted(200, '{"ok":false,"error":"expired_trigger_id"}'))
    url = slack.response_url()
    caller.command("", url)
    assert "Please press once more" in slack.message(url)["text"]


def test_a_submitted_form_asks_like_a_command_and_answers_where_it_was_opened(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    values = filled(model="llama-3.1-70b", gpu="h100", sequence_length="8k", micro_batch=" 2 ", more="tp=8\nzero=1")
    submitted = caller.submit(form_of(url), values)
    assert (submitted.status, submitted.body) == (200, "")
    assert slack.message(url)["text"].startswith("Fits: 32 × H100")

    commands = {asked.body["command"] for asked in service.sizings_asked()}
    assert commands == {"llama-3.1-70b gpu=h100 sequence_length=8k micro_batch=2 tp=8 zero=1"}
    assert len({asked.headers["idempotency-key"] for asked in service.sizings_asked()}) == 1, "recorded once"


def test_a_form_from_the_home_tab_is_answered_by_direct_message(slack: FakeSlack, caller: SlackCaller) -> None:
    caller.press({"action_id": presses.NEW}, "", block_id="home")
    assert initial(opened(slack)) == {}
    caller.submit(form_of(), filled(model="70B"))
    slack.wait_for(lambda fake: fake.calls("chat.postMessage"))
    assert slack.calls("chat.postMessage")[0]["channel"] == "U0USER"


def test_what_is_wrong_is_said_at_the_field_and_the_form_stays(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers["POST /api/v1/sizings"] = problem(
        422,
        "Three things are wrong.",
        {"pointer": "/sequence_length", "detail": "sequence_length is out of range", "given": "-1"},
        {"pointer": "/gpu", "detail": "H1000 is not a GPU", "suggestions": ["H100", "H200"]},
        {"pointer": "/tp", "detail": "64 heads cannot be split"},
        {"pointer": "/zero", "detail": "zero=9 is no stage"},
    )
    submitted = caller.submit(form_of(slack.response_url()), filled(model="70B", sequence_length="-1"))
    assert submitted.json() == {
        "response_action": "errors",
        "errors": {
            "sequence_length": "sequence_length is out of range.",
            "gpu": "H1000 is not a GPU. Did you mean H100, H200?",
            "more": "64 heads cannot be split. zero=9 is no stage.",
        },
    }


@pytest.mark.parametrize(
    ("told", "words"),
    [(problem(500, "broken"), "failed on this question"), (Told(0, None, reset=True), "cannot be reached")],
)
def test_a_service_that_fails_closes_the_form_and_a_message_says_so(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, told: Told, words: str
) -> None:
    service.answers["POST /api/v1/sizings"] = told
    url = slack.response_url()
    assert caller.submit(form_of(url), filled(model="70B")).body == ""
    assert words in slack.message(url)["text"]


def test_a_slow_answer_does_not_keep_the_form_waiting(
    slack: FakeSlack,
    service: FakeService,
    settings: Settings,
    start_bot: Callable[[Settings], Running],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.listeners.views.PATIENCE_S", 0.1)
    hold = Event()
    service.answers["POST /api/v1/sizings"] = Told(201, sizing(), wait_for=hold)
    url = slack.response_url()
    submitted = start_bot(replace(settings, service_timeout_s=20.0)).caller.submit(form_of(url), filled(model="70B"))
    assert submitted.body == "" and submitted.took_s < 3.0
    hold.set()
    assert slack.message(url)["text"].startswith("Fits: 32 × H100")


def test_typing_offers_what_was_typed_and_what_the_catalogue_has(service: FakeService, caller: SlackCaller) -> None:
    models = [{"id": f"model-{number}", "name": f"Model {number}", "parameters": 7 * 10**9} for number in range(150)]
    service.answers["GET /api/v1/models"] = Told(200, {"items": models, "next": None})
    found = caller.type_ahead(form.MODEL, "23B").json()["options"]
    assert len(found) == 100
    assert found[0] == {"text": {"type": "plain_text", "text": "“23B” as typed", "emoji": True}, "value": "23B"}
    assert found[1]["value"] == "model-0" and found[1]["description"]["text"] == "7 B"


def test_typing_a_gpu_without_a_known_total_offers_its_label(service: FakeService, caller: SlackCaller) -> None:
    gpu = {"id": "mi300a", "name": "AMD Instinct MI300A", "memory_bytes": None, "label_gb": 128}
    service.answers["GET /api/v1/gpus"] = Told(200, {"items": [gpu], "next": None})
    [found] = caller.type_ahead(form.GPU, "").json()["options"]
    assert found["description"]["text"] == "128 GB by its label"


def test_typing_goes_on_when_the_service_is_down(service: FakeService, caller: SlackCaller) -> None:
    service.answers["GET /api/v1/gpus"] = problem(500, "broken")
    assert [one["value"] for one in caller.type_ahead(form.GPU, "H1").json()["options"]] == ["H1"]
    assert caller.type_ahead(form.GPU, "").json()["options"] == []
