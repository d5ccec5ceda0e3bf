"""Before the first command, one look says what is missing, in words that lead to it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from bot.check import run
from bot.permissions import SCOPES
from service.cli import cli
from tests.support.fake_service import FakeService
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, FakeSlack, Scripted


@pytest.fixture
def environment(slack: FakeSlack, service: FakeService) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_SIGNING_SECRET": "secret",
        "TRAINMEM_SLACK_API_URL": slack.api_url,
        "TRAINMEM_SERVICE_URL": service.url,
        "TRAINMEM_PUBLIC_URL": "https://trainmem.example.org",
    }


def test_when_all_is_well_every_permission_is_listed(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(environment) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    assert len(lines) == len(SCOPES) + 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"SLACK_BOT_TOKEN": ""}, "SLACK_BOT_TOKEN is not set"),
        ({"SLACK_BOT_TOKEN": "xoxb-revoked"}, "Slack refuses SLACK_BOT_TOKEN: invalid_auth"),
        ({"TRAINMEM_SLACK_API_URL": "http://127.0.0.1:9/api"}, "Slack cannot be reached"),
        ({"TRAINMEM_SERVICE_URL": "http://127.0.0.1:9"}, "does not answer at http://127.0.0.1:9"),
        ({"TRAINMEM_PUBLIC_URL": ""}, "TRAINMEM_PUBLIC_URL is not set"),
    ],
)
def test_what_is_missing_is_named(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str], changed: dict[str, str], words: str
) -> None:
    assert run({**environment, **changed}) == 1
    assert any(line.startswith("missing") and words in line for line in capsys.readouterr().out.splitlines())


def test_a_permission_that_was_not_granted_is_named_with_its_use(
    slack: FakeSlack, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    slack.scopes = frozenset({"commands", "chat:write"})
    assert run(environment) == 1
    missing = [line.split()[2] for line in capsys.readouterr().out.splitlines() if line.startswith("missing")]
    assert missing == ["app_mentions:read:", "links:read:", "links:write:"]


def test_it_is_a_command_of_trainmem() -> None:
    answered = CliRunner().invoke(cli, ["bot", "check"])
    assert answered.exit_code == 1
    assert "SLACK_BOT_TOKEN is not set" in answered.output


def test_in_socket_mode_the_app_token_is_tried(
    slack: FakeSlack, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    socket = {**environment, "SLACK_APP_TOKEN": APP_TOKEN}
    slack.socket_url = "ws://127.0.0.1:9/"
    assert run(socket) == 0
    assert "SLACK_APP_TOKEN opens a socket" in capsys.readouterr().out
    slack.script("apps.connections.open", Scripted(200, '{"ok":false,"error":"not_allowed_token_type"}'))
    assert run(socket) == 1
    assert "Slack refuses SLACK_APP_TOKEN: not_allowed_token_type" in capsys.readouterr().out
