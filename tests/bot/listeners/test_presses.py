"""Every press is acknowledged, asks the right question, and brings its answer to the right place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from bot.blocks import presses
from bot.settings import Settings
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService, Told, problem, sizing
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller

ID = "sz_01jdz6q8w2x4y6m3k7"
ROW = presses.block_id(ID, "next")
TIGHT = sizing("sizing-70b-tight")


@pytest.fixture(autouse=True)
def recorded_sizing(service: FakeService) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = Told(200, TIGHT)


def chosen(action_id: str, value: str) -> dict[str, Any]:
    return {"action_id": action_id, "selected_option": {"value": value}}


def text_of(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


def test_the_answer_carries_every_press_and_each_of_them_is_known(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers["POST /api/v1/sizings"] = Told(201, TIGHT)
    url = slack.response_url()
    caller.command("70B", url)
    rows = [block for block in slack.message(url)["blocks"] if block["type"] == "actions"]
    elements = [(block["block_id"], element) for block in rows for element in block["elements"]]
    assert [element["action_id"] for _, element in elements] == [
        "what_if",
        "share",
        "change",
        "compare_gpus",
        "explain",
        "decide",
        "open_in_browser",
    ]
    for block_id, element in elements:
        value = {"selected_option": element["options"][0]} if "options" in element else {"value": "x"}
        pressed = caller.press({"action_id": element["action_id"], **value}, slack.response_url(), block_id=block_id)
        assert (pressed.status, pressed.body) == (200, "")


def test_share_posts_for_everybody_who_shared_it_and_what_everybody_may_press(
    slack: FakeSlack, caller: SlackCaller
) -> None:
    url = slack.response_url()
    caller.press({"action_id": presses.SHARE}, url, block_id=ROW)
    message = slack.message(url)
    assert message["response_type"] == "in_channel" and message["replace_original"] is False
    assert "Shared by <@U0USER>" in text_of(message)
    [row] = [block for block in message["blocks"] if block["type"] == "actions"]
    assert [element["action_id"] for element in row["elements"]] == ["decide", "explain", "open_in_browser"]


def test_a_share_that_fails_is_told_to_the_asker_only(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = problem(500, "broken")
    url = slack.response_url()
    caller.press({"action_id": presses.SHARE}, url, block_id=ROW)
    assert slack.message(url)["response_type"] == "ephemeral"


def test_a_lever_is_pulled_in_place_and_the_message_says_from_what_to_what(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    place = next(n for n, lever in enumerate(TIGHT["levers"]) if lever["change"] == {"micro_batch": 1})
    caller.press(chosen(presses.WHAT_IF, str(place)), url, block_id=presses.block_id(ID, "levers"))
    message = slack.message(url)

    [asked] = service.sizings_asked()
    assert asked.body == {"model": "llama-3.1-70b", "gpu": "h100", "sequence_length": 8192, "micro_batch": 1}
    assert message["replace_original"] is True
    lead = message["blocks"][0]["elements"][0]["text"]
    assert lead == "*What if* *micro_batch 2 → 1*: 16 GPUs, 71.6 GiB → 32 GPUs, 42.5 GiB per GPU."
    [back] = [
        element
        for block in message["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
        if element["action_id"] == presses.SHOW
    ]
    assert back["value"] == ID


def test_back_shows_the_sizing_before_without_asking_anew(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    caller.press({"action_id": presses.SHOW, "value": ID}, url, block_id="anywhere")
    assert slack.message(url)["text"].startswith("Fits, but tight: 16 × H100")
    assert service.sizings_asked() == []


def test_a_press_under_a_message_that_all_see_answers_the_presser_alone(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.press({"action_id": presses.SHOW, "value": ID}, url, ephemeral=False)
    message = slack.message(url)
    assert (message["replace_original"], message["response_type"]) == (False, "ephemeral")


def test_compare_asks_for_the_usual_gpus_and_its_own(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    line = {
        "gpus": 16,
        "layout": TIGHT["per_gpu"]["layout"],
        "peak_bytes": 2**36,
        "headroom_bytes": 2**30,
        "fits": True,
    }
    lines = [{**line, "gpu": "b200"}, {**line, "gpu": "h100-sxm-80gb", "fits": False, "headroom_bytes": -(2**30)}]
    service.answers["POST /api/v1/sizings"] = Told(201, sizing() | {"comparison": lines})
    url = slack.response_url()
    caller.press({"action_id": presses.COMPARE}, url, block_id=ROW)
    message = slack.message(url)

    assert service.sizings_asked()[0].body["gpu"] == ["A100-80G", "H100", "H200", "B200", "MI300X", "MI355X", "h100"]
    [table] = [block for block in message["blocks"] if block["type"] == "table"]
    assert [[cell["text"] for cell in row][:2] for row in table["rows"][1:]] == [
        ["⛔ h100-sxm-80gb", "16"],
        ["✅ b200", "16"],
    ]
    assert table["rows"][1][-1]["text"] == "−1.0\u00a0GiB"


def test_a_gpu_of_the_comparison_can_be_taken(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.press(chosen(presses.USE_GPU, "b200"), url, block_id=presses.block_id(ID, "gpus"))
    slack.message(url)
    assert service.sizings_asked()[0].body["gpu"] == "b200"


def test_explain_opens_the_largest_term_and_the_menu_another_one(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.press({"action_id": presses.EXPLAIN}, url, block_id=ROW)
    assert "Optimizer moments: 32.9 GiB (35.3 GB) per GPU, 44%" in text_of(slack.message(url))
    caller.press(chosen(presses.EXPLAIN_TERM, "activations"), url, block_id=presses.block_id(ID, "terms"))
    second = slack.message(url, 2)
    assert second["blocks"][0]["text"]["text"].startswith("Activations: 1.8 GiB")
    assert second["replace_original"] is True


def test_a_suggestion_is_asked_as_a_command_and_replaces_the_error(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    url = slack.response_url()
    caller.press({"action_id": f"{presses.USE_SUGGESTION}:1", "value": "70B gpu=H200"}, url)
    message = slack.message(url)
    assert service.sizings_asked()[0].body == {"command": "70B gpu=H200"}
    assert message["replace_original"] is True


def test_a_double_press_makes_one_record(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    url = slack.response_url()
    for number in (1, 2):
        action = {"action_id": f"{presses.USE_SUGGESTION}:0", "value": "70B"}
        caller.press(action, url, trigger_id="1.2.same")
        slack.message(url, number)
    assert len({asked.headers["idempotency-key"] for asked in service.sizings_asked()}) == 1


def test_a_suggested_comparison_stays_a_comparison(slack: FakeSlack, service: FakeService, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.press({"action_id": f"{presses.USE_SUGGESTION}:0", "value": "compare H100,H200 70B"}, url)
    slack.message(url)
    assert service.sizings_asked()[0].body == {"command": "70B gpu=H100,H200"}


def test_what_fails_stands_beside_the_answer_that_was_pressed_and_not_in_its_place(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers["POST /api/v1/sizings"] = problem(422, "wrong", {"pointer": "/tp", "detail": "cannot be"})
    url = slack.response_url()
    caller.press(chosen(presses.WHAT_IF, "0"), url, block_id=ROW)
    message = slack.message(url)
    assert message["replace_original"] is False
    assert "I read" not in message["text"], "nobody typed anything"


def test_a_press_in_the_home_tab_is_answered_by_direct_message(slack: FakeSlack, caller: SlackCaller) -> None:
    caller.press({"action_id": presses.SHOW, "value": ID}, "", ephemeral=False)
    slack.wait_for(lambda fake: fake.calls("chat.postMessage"))
    assert slack.calls("chat.postMessage")[0]["channel"] == "U0USER"


def test_a_press_that_finds_no_room_is_told(
    slack: FakeSlack, service: FakeService, settings: Settings, start_bot: Callable[[Settings], Running]
) -> None:
    hold = Event()
    service.answers[f"GET /api/v1/sizings/{ID}"] = Told(200, TIGHT, wait_for=hold)
    caller = start_bot(replace(settings, answering=1, waiting=1, service_timeout_s=20.0)).caller
    urls = [slack.response_url() for _ in range(4)]
    for url in urls:
        caller.press({"action_id": presses.SHOW, "value": ID}, url)
    assert "I cannot take another one" in slack.message(urls[-1])["text"]
    hold.set()


@pytest.mark.parametrize("action_id", [presses.WHAT_IF, presses.EXPLAIN, presses.COMPARE, presses.CHANGE])
def test_a_sizing_that_is_gone_is_told_with_an_id(
    slack: FakeSlack, service: FakeService, caller: SlackCaller, action_id: str
) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = problem(404, f"No sizing has the id {ID}.")
    url = slack.response_url()
    caller.press(chosen(action_id, "0"), url, block_id=ROW)
    if action_id == presses.CHANGE:
        slack.wait_for(lambda fake: fake.calls("views.update"))
        assert "No sizing has the id" in text_of(slack.calls("views.update")[0])
    else:
        assert "No sizing has the id" in slack.message(url)["text"]


@pytest.mark.parametrize(
    "action",
    [
        {"action_id": presses.WHAT_IF, "selected_option": {"value": "99"}},
        {"action_id": presses.WHAT_IF, "selected_option": None},
        {"action_id": presses.EXPLAIN_TERM, "value": "nonsense"},
        {"action_id": presses.SHOW, "value": "../../etc/passwd"},
        {"action_id": presses.SHOW},
    ],
)
def test_a_press_that_was_tampered_with_is_told_and_never_a_server_error(
    slack: FakeSlack, caller: SlackCaller, action: dict[str, Any]
) -> None:
    url = slack.response_url()
    assert caller.press(action, url, block_id=ROW).status == 200
    assert "(id " in slack.message(url)["text"]
