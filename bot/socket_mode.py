"""The bot in Socket Mode: no public address needed. One process, beside it a page that says whether it is connected."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk.errors import SlackApiError

from bot.app import create_bot
from bot.settings import Settings

log = structlog.get_logger(__name__)

DRAIN_S = 25.0
EXIT_REFUSED = 77
"""EX_NOPERM of sysexits.h: Slack does not take the app-level token."""


def run(settings: Settings) -> int:
    """Runs until SIGTERM or SIGINT, then answers what was taken."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    bot = create_bot(settings)
    handler = SocketModeHandler(bot.app, settings.app_token)
    serve_health(settings.bind, handler.client.is_connected)
    try:
        handler.connect()  # type: ignore[no-untyped-call]
    except SlackApiError as error:
        log.error("app_token_refused", error=error.response.get("error"))
        return EXIT_REFUSED
    log.info("connected", transport="socket")
    bot.news.start()
    stop.wait()
    handler.close()  # type: ignore[no-untyped-call]
    bot.close(within_s=DRAIN_S)
    return 0


def serve_health(bind: str, connected: Callable[[], bool]) -> WSGIServer:
    """Serves /healthz and /readyz on a thread that ends with the process."""
    host, _, port = bind.rpartition(":")
    server = make_server(host.strip("[]"), int(port), health_page(connected), handler_class=QuietHandler)
    Thread(target=server.serve_forever, name="health", daemon=True).start()
    return server


def health_page(connected: Callable[[], bool]) -> Callable[..., Iterable[bytes]]:
    def page(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        known = environ.get("PATH_INFO") in ("/healthz", "/readyz")
        up = environ.get("PATH_INFO") == "/healthz" or connected()
        status = "404 Not Found" if not known else "200 OK" if up else "503 Service Unavailable"
        start_response(status, [("Content-Type", "application/json")])
        return [b'{"status": "ok"}\n' if status.startswith("200") else b'{"status": "not connected"}\n']

    return page


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Probes every few seconds are no news."""
