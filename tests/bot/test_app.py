"""Slack is asked once who we are, before anybody waits; a refusal stops neither the start nor the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from bot.settings import Settings
from tests.bot.conftest import Running
from tests.support.fake_slack import FakeSlack, Scripted


def test_slack_is_asked_at_start_and_not_during_a_command(
    slack: FakeSlack, settings: Settings, start_bot: Callable[[Settings], Running]
) -> None:
    running = start_bot(settings)
    assert len(slack.calls("auth.test")) == 1
    for _ in range(3):
        url = slack.response_url()
        running.caller.command("help", url)
        slack.message(url)
    assert [one.method for one in slack.received if one.path.startswith("/api/")] == ["auth.test"]


@pytest.mark.parametrize(
    ("trouble", "event"),
    [
        (Scripted(200, '{"ok":false,"error":"invalid_auth"}'), "slack_token_refused"),
        (Scripted(500, "oops"), "slack_not_reached"),
        (Scripted(reset=True), "slack_not_reached"),
    ],
    ids=["token refused", "failing", "reset"],
)
def test_the_first_command_is_answered_although_slack_did_not_say_who_we_are(
    slack: FakeSlack, settings: Settings, start_bot: Callable[[Settings], Running], trouble: Scripted, event: str
) -> None:
    slack.script("auth.test", trouble, trouble)
    with capture_logs() as entries:
        running = start_bot(settings)
    assert [entry["event"] for entry in entries] == [event]
    url = slack.response_url()
    assert running.caller.command("help", url).status == 200
    slack.message(url)


def test_a_token_that_is_wrong_shows_in_the_log_without_the_token(
    slack: FakeSlack, settings: Settings, start_bot: Callable[[Settings], Running]
) -> None:
    with capture_logs() as entries:
        start_bot(replace(settings, bot_token="xoxb-revoked"))
    [entry] = entries
    assert (entry["event"], entry["error"]) == ("slack_token_refused", "invalid_auth")
    assert "xoxb" not in str(entry)
