"""The bot as it really runs: gunicorn in a process of its own, signed HTTP, SIGTERM."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from bot.server import EXIT_CONFIGURATION, run
from bot.wsgi import EVENTS_PATH
from tests.bot.conftest import SECRET
from tests.support.fake_service import FakeService, Told, sizing
from tests.support.fake_slack import BOT_TOKEN, FakeSlack
from tests.support.slack_processes import TrainmemProcess, bot_process, wait_until_bot_is_ready
from tests.support.slack_requests import SlackCaller


@pytest.fixture
def environment(slack: FakeSlack, service: FakeService) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_SIGNING_SECRET": SECRET,
        "TRAINMEM_SLACK_API_URL": slack.api_url,
        "TRAINMEM_SERVICE_URL": service.url,
    }


@pytest.fixture
def process(environment: dict[str, str]) -> Iterator[TrainmemProcess]:
    with bot_process(environment) as started:
        wait_until_bot_is_ready(started)
        yield started


@pytest.fixture
def caller(process: TrainmemProcess) -> SlackCaller:
    return SlackCaller(process.url + EVENTS_PATH, SECRET)


def test_a_signed_command_is_answered_by_the_real_process(
    slack: FakeSlack, service: FakeService, process: TrainmemProcess, caller: SlackCaller
) -> None:
    url = slack.response_url()
    acknowledged = caller.command("70B seq=8k mb=2 gpu=H100", url)
    assert (acknowledged.status, acknowledged.body) == (200, "")
    assert slack.message(url)["text"].startswith("Fits: 32 × H100")
    assert caller.post(b"x", {"X-Slack-Request-Timestamp": "garbage"}).status == 401
    assert "70B seq" not in process.text(), "what people type does not belong in the log"
    assert BOT_TOKEN not in process.text() and SECRET not in process.text()


def test_sigterm_lets_what_was_taken_be_answered(
    slack: FakeSlack, service: FakeService, process: TrainmemProcess, caller: SlackCaller
) -> None:
    hold, asked = Event(), Event()

    def slowly(_: object) -> Told:
        asked.set()
        return Told(201, sizing(), wait_for=hold)

    service.answers["POST /api/v1/sizings"] = slowly
    urls = [slack.response_url() for _ in range(3)]
    for url in urls:
        assert caller.command("70B", url).status == 200
    assert asked.wait(10)
    process.process.terminate()
    process.wait_for_line(lambda line: "Handling signal: term" in line)
    hold.set()
    assert process.wait() == 0
    assert [len(slack.messages(url)) for url in urls] == [1, 1, 1]


def test_a_setting_that_is_missing_is_named_and_starting_again_is_told_to_be_useless(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run({}) == EXIT_CONFIGURATION
    said = capsys.readouterr().err
    assert "SLACK_BOT_TOKEN is not set" in said and "SLACK_SIGNING_SECRET is not set" in said
    assert "Traceback" not in said
