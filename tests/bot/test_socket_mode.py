"""Socket Mode: the same answers without a public address, and an orderly end."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from bot.socket_mode import EXIT_REFUSED, serve_health
from tests.support.fake_service import FakeService
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, FakeSlack
from tests.support.slack_processes import bot_process
from tests.support.slack_requests import command_form
from tests.support.slack_socket import SlackSocket


@pytest.fixture
def socket(slack: FakeSlack) -> Iterator[SlackSocket]:
    with SlackSocket() as fake:
        slack.socket_url = fake.url
        yield fake


@pytest.fixture
def environment(slack: FakeSlack, service: FakeService) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_APP_TOKEN": APP_TOKEN,
        "TRAINMEM_SLACK_API_URL": slack.api_url,
        "TRAINMEM_SERVICE_URL": service.url,
    }


def test_a_command_over_the_socket_is_acknowledged_and_answered_and_sigterm_ends_it(
    slack: FakeSlack, service: FakeService, socket: SlackSocket, environment: dict[str, str]
) -> None:
    url = slack.response_url()
    with bot_process(environment) as process:
        socket.command("envelope-1", command_form("70B seq=8k mb=2 gpu=H100", url, "1.2.3"))
        assert socket.acknowledgement("envelope-1") == {"envelope_id": "envelope-1"}
        assert slack.message(url)["text"].startswith("Fits: 32 × H100")
        assert service.sizings_asked()[0].headers["trainmem-on-behalf-of"] == "slack:T0TEAM/U0USER"
        assert process.terminate() == 0
        socket.wait_until_closed()


def test_an_app_token_that_slack_does_not_take_ends_the_process_with_a_reason(
    environment: dict[str, str],
) -> None:
    with bot_process({**environment, "SLACK_APP_TOKEN": "xapp-wrong"}) as process:
        assert process.wait() == EXIT_REFUSED
        assert {"app_token_refused"} <= {entry["event"] for entry in process.log()}
        assert "Traceback" not in process.text() and "xapp-wrong" not in process.text()


@pytest.mark.parametrize(
    ("connected", "path", "status"),
    [
        (True, "/healthz", 200),
        (False, "/healthz", 200),
        (True, "/readyz", 200),
        (False, "/readyz", 503),
        (True, "/", 404),
    ],
)
def test_health_is_the_process_and_readiness_is_the_connection(connected: bool, path: str, status: int) -> None:
    server = serve_health("127.0.0.1:0", lambda: connected)
    connection = HTTPConnection("127.0.0.1", server.server_port)
    connection.request("GET", path)
    assert connection.getresponse().status == status
    connection.close()
    server.shutdown()
    server.server_close()
