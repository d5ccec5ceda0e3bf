"""The whole path with nothing of ours faked: signed HTTP → `trainmem bot` → `trainmem serve` → its database → Slack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from bot.wsgi import EVENTS_PATH
from tests.bot.conftest import SECRET
from tests.support.fake_slack import BOT_TOKEN, FakeSlack
from tests.support.slack_block_kit import problems
from tests.support.slack_processes import TrainmemProcess, bot_process, service_process, wait_until_bot_is_ready
from tests.support.slack_requests import Answer, SlackCaller


@pytest.fixture(scope="module")
def real_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainmemProcess]:
    database = tmp_path_factory.mktemp("end-to-end") / "trainmem.db"
    deciders = {"TRAINMEM_DECIDERS": "slack:T0TEAM/U0BOSS"}
    with service_process({"TRAINMEM_DATABASE_URL": f"sqlite:///{database}", **deciders}) as process:
        assert process.url
        yield process


@pytest.fixture(scope="module")
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as fake:
        yield fake


@pytest.fixture(scope="module")
def caller(slack: FakeSlack, real_service: TrainmemProcess) -> Iterator[SlackCaller]:
    environment = {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_SIGNING_SECRET": SECRET,
        "TRAINMEM_SLACK_API_URL": slack.api_url,
        "TRAINMEM_SERVICE_URL": real_service.url,
        "TRAINMEM_PUBLIC_URL": real_service.url,
        "TRAINMEM_BOT_NEWS_S": "0.2",
    }
    with bot_process(environment) as process:
        wait_until_bot_is_ready(process)
        yield SlackCaller(process.url + EVENTS_PATH, SECRET)


def cells(message: dict[str, Any]) -> list[list[str]]:
    [table] = [block for block in message["blocks"] if block["type"] == "table"]
    return [[cell["text"].replace("\u00a0", " ") for cell in row] for row in table["rows"][1:]]


def recorded(service: TrainmemProcess) -> list[dict[str, Any]]:
    return list(httpx.get(f"{service.url}/api/v1/sizings", params={"requester": "slack:T0TEAM/U0USER"}).json()["items"])


def test_a_command_in_slack_becomes_a_recorded_sizing_and_an_answer_with_every_term(
    slack: FakeSlack, real_service: TrainmemProcess, caller: SlackCaller
) -> None:
    url = slack.response_url()
    before = len(recorded(real_service))
    assert caller.command("70B seq=8k mb=2 gpu=H100", url).status == 200
    message = slack.message(url)

    [sizing, *_] = recorded(real_service)
    assert len(recorded(real_service)) == before + 1
    assert sizing["via"] == "slack" and sizing["id"] in json.dumps(message)
    assert sizing["verdict"]["text"].partition(", ")[0] in message["blocks"][0]["text"]["text"]
    # 70,553,706,496 parameters of Llama 3.1 70B × 2 bytes = 141.1 GB = 131.4 GiB of weights, 4 × as many of moments
    assert [row[:2] for row in cells(message)[:4]] == [
        ["Weights", "131.4 GiB (141.1 GB)"],
        ["Gradients", "131.4 GiB (141.1 GB)"],
        ["Master weights", "262.8 GiB (282.2 GB)"],
        ["Optimizer moments", "525.7 GiB (564.4 GB)"],
    ]
    assert httpx.get(f"{real_service.url}/sizings/{sizing['id']}").status_code == 200, "the link in the message opens"


def test_a_second_delivery_of_the_same_press_makes_no_second_record(
    slack: FakeSlack, real_service: TrainmemProcess, caller: SlackCaller
) -> None:
    urls = [slack.response_url(), slack.response_url()]
    before = len(recorded(real_service))
    for url in urls:
        caller.command("8B gpu=H100", url, trigger_id="the.same.press")
    first, second = (slack.message(url) for url in urls)
    assert first["blocks"] == second["blocks"]
    assert len(recorded(real_service)) == before + 1


@pytest.mark.parametrize(
    "text",
    [
        "70B gpu=H1000",
        "70B sq=8k",
        "lama-3-70b",
        "70B tp=3",
        "70B seq=-1 mb=0",
        "70B tp=8 gpus=12",
        "<!channel> `70B` *gpu=H100*",
        "🦙" * 50,
        "\u202e70B gpu=H100",
        "x" * 4000,
        "70B gpu=",
        '{"model": "70B"',
        "70B " * 900,
    ],
)
def test_whatever_people_type_they_get_a_message_that_slack_takes(
    slack: FakeSlack, caller: SlackCaller, text: str
) -> None:
    url = slack.response_url()
    caller.command(text, url)
    message = slack.message(url)
    assert problems(message) == []
    assert "blocks" in message and message["text"]
    assert "<!" not in message["text"]


@pytest.mark.parametrize(
    "text",
    [
        "70B seq=8k mb=2 gpu=H100 gpus=8",
        "llama-3.1-8b 8xH100 seq=32k ckpt=full",
        "70B lora=16 gpu=A100-80G",
        "mixtral-8x7b 64xH100 tp=8 ep=8 zero=1",
        "deepseek-v3 gpu=H200",
        "7B gpu=T4",
        "23B gpu=MI300X tokens=1T",
        "gpt2 gpu=A10 opt=sgd",
    ],
)
def test_every_kind_of_question_is_answered_with_blocks(slack: FakeSlack, caller: SlackCaller, text: str) -> None:
    url = slack.response_url()
    caller.command(text, url)
    message = slack.message(url, timeout_s=20)
    assert cells(message)[-1][0] == "Total", message["text"]


def pressed(
    slack: FakeSlack, caller: SlackCaller, block: dict[str, Any], action_id: str, value: str | None = None
) -> dict[str, Any]:
    url = slack.response_url()
    chosen = {"selected_option": {"value": value}} if value is not None else {}
    caller.press({"action_id": action_id, **chosen}, url, block_id=block["block_id"])
    return slack.message(url, timeout_s=60)


@pytest.mark.parametrize(
    "text", ["8B 8xH100 tp=2 zero=1 opt=muon", "13B seq=4k gpu=A100-80G lora=8", "23B tp=4 gpus=4"]
)
def test_every_lever_of_an_answer_can_be_pulled(slack: FakeSlack, caller: SlackCaller, text: str) -> None:
    url = slack.response_url()
    caller.command(text, url)
    answer = slack.message(url, timeout_s=20)
    [levers] = [block for block in answer["blocks"] if block.get("block_id", "").endswith(":levers")]
    for option in levers["elements"][0]["options"]:
        after = pressed(slack, caller, levers, "what_if", option["value"])
        lead = after["blocks"][0]
        assert lead["type"] == "context" and option["text"]["text"] in lead["elements"][0]["text"], after["text"]


def test_gpus_are_compared_and_one_of_them_is_taken(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.command("compare H100,A100-80G,MI300X 8B tp=1", url)
    compared = slack.message(url, timeout_s=60)
    assert len(cells(compared)) == 3, compared["text"]
    [menu] = [block for block in compared["blocks"] if block["type"] == "actions"]
    taken = pressed(slack, caller, menu, "use_gpu", "mi300x")
    assert "AMD Instinct MI300X" in json.dumps(taken["blocks"])


def test_explanations_lists_and_history_come_from_the_service(slack: FakeSlack, caller: SlackCaller) -> None:
    said = {}
    for text in ("explain activations", "models llama-3.1", "gpus h100", "last"):
        url = slack.response_url()
        caller.command(text, url)
        said[text] = json.dumps(slack.message(url)["blocks"], ensure_ascii=False)
    assert "layer" in said["explain activations"]
    assert "llama-3.1-70b" in said["models llama-3.1"] and "h100-sxm5-80gb" in said["gpus h100"]
    assert "show_sizing" in said["last"]


def test_a_form_is_filled_from_an_answer_and_asks_the_same_again(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.command("8B seq=4k 8xH100 tp=2 zero=1 opt=muon ckpt=full:4", url)
    answer = slack.message(url, timeout_s=20)
    [buttons] = [block for block in answer["blocks"] if block.get("block_id", "").endswith(":next")]
    caller.press({"action_id": "change"}, slack.response_url(), block_id=buttons["block_id"])
    slack.wait_for(lambda fake: fake.calls("views.update"))
    view = slack.calls("views.update")[-1]["view"]
    values = {
        block["block_id"]: {
            "field": {"value": element["initial_value"]}
            if "initial_value" in element
            else {"selected_option": element.get("initial_option")}
        }
        for block in view["blocks"]
        for element in [block["element"]]
    }
    again = slack.response_url()
    view["private_metadata"] = json.dumps({"response_url": again})
    assert caller.submit(view, values).body == ""
    assert cells(slack.message(again, timeout_s=20)) == cells(answer)


def decide(slack: FakeSlack, caller: SlackCaller, block: dict[str, Any], **fields: str) -> Answer:
    seen = len(slack.calls("views.update"))
    caller.press({"action_id": "decide"}, slack.response_url(), block_id=block["block_id"], ephemeral=False)
    slack.wait_for(lambda fake: len(fake.calls("views.update")) > seen)
    view = slack.calls("views.update")[-1]["view"]
    state: dict[str, Any] = {name: {"x": {"value": fields.get(name)}} for name in ("gpus_granted", "reason")}
    for name in ("decision", "gpu"):
        state[name] = {"x": {"selected_option": {"value": fields[name]} if name in fields else None}}
    return caller.submit(view, state)


def test_who_may_decide_decides_once_and_whoever_asked_hears_of_it(slack: FakeSlack, caller: SlackCaller) -> None:
    url = slack.response_url()
    caller.command("8B gpu=H100", url)
    [buttons] = [block for block in slack.message(url)["blocks"] if block.get("block_id", "").endswith(":next")]

    refused = decide(slack, caller, buttons, decision="approve").json()
    assert "may not decide" in refused["errors"]["decision"]

    boss = replace(caller, user="U0BOSS")
    missing = decide(slack, boss, buttons, decision="reject").json()
    assert list(missing["errors"]) == ["reason"]
    assert decide(slack, boss, buttons, decision="override", gpus_granted="4", reason="pool is full").body == ""

    slack.wait_for(lambda fake: any(call["channel"] == "U0USER" for call in fake.calls("chat.postMessage")))
    told = [call for call in slack.calls("chat.postMessage") if call["channel"] == "U0USER"]
    assert "Granted otherwise by @U0BOSS: 4 × h100-sxm5-80gb for llama-3.1-8b" in told[0]["text"]
