"""A bot in this process between a fake Slack and a fake service, all on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler

import pytest
from flask import Flask
from werkzeug.serving import make_server

from bot import logs
from bot.app import Bot, create_bot
from bot.settings import Settings
from bot.wsgi import EVENTS_PATH, create_wsgi
from tests.support.fake_service import FakeService
from tests.support.fake_slack import BOT_TOKEN, FakeSlack
from tests.support.slack_requests import SlackCaller

SECRET = "test-signing-secret"


@pytest.fixture(autouse=True)
def json_logs() -> None:
    """As in a running bot, so that tests can read them."""
    logs.configure("info")


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as fake:
        yield fake


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        yield fake


@pytest.fixture
def settings(slack: FakeSlack, service: FakeService) -> Settings:
    return Settings(
        bot_token=BOT_TOKEN,
        signing_secret=SECRET,
        service_url=service.url,
        slack_api_url=slack.api_url,
        public_url="https://trainmem.example.org",
        service_timeout_s=1.0,
    )


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Tests print what fails, not every request."""


@dataclass(slots=True)
class Running:
    """A bot that listens, and Slack's hand on its bell."""

    bot: Bot
    wsgi: Flask
    caller: SlackCaller
    _stop: Callable[[], None] = field(repr=False)
    closed: bool = False

    def close(self) -> None:
        """Takes nothing more and finishes what was taken; once is enough."""
        if self.closed:
            return
        self.closed = True
        self._stop()
        self.bot.close(within_s=5.0)


@pytest.fixture
def start_bot() -> Iterator[Callable[[Settings], Running]]:
    """Starts a bot over HTTP in a thread of this process; several a test when it wants other settings."""
    started: list[Running] = []

    def start(settings: Settings) -> Running:
        bot = create_bot(settings)
        wsgi = create_wsgi(bot)
        server = make_server("127.0.0.1", 0, wsgi, threaded=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()

        def stop() -> None:
            server.shutdown()
            thread.join()
            server.server_close()

        caller = SlackCaller(f"http://127.0.0.1:{server.server_port}{EVENTS_PATH}", settings.signing_secret or "")
        started.append(Running(bot, wsgi, caller, stop))
        return started[-1]

    yield start
    for running in started:
        running.close()


@pytest.fixture
def running(start_bot: Callable[[Settings], Running], settings: Settings) -> Running:
    return start_bot(settings)


@pytest.fixture
def caller(running: Running) -> SlackCaller:
    return running.caller
