"""The bot over HTTP: Slack's requests on one path, health on two."""

from __future__ import annotations

import structlog
from flask import Flask, Response, jsonify, request
from slack_bolt.adapter.flask import SlackRequestHandler
from werkzeug.exceptions import HTTPException

from bot import ids, limits
from bot.app import Bot
from bot.guard import well_formed

log = structlog.get_logger(__name__)

EVENTS_PATH = "/slack/events"
"""Commands, presses, forms and events all arrive here; the manifest says so to Slack."""


def create_wsgi(bot: Bot) -> Flask:
    flask = Flask("bot")
    flask.config["MAX_CONTENT_LENGTH"] = limits.REQUEST_BODY_BYTES
    slack = SlackRequestHandler(bot.app)

    @flask.post(EVENTS_PATH)
    def slack_events() -> Response:
        if not well_formed(request.headers):
            return refusal(401, "not signed by Slack")
        request.get_data()  # a body over the limit raises 413 here, before anything reads it
        return slack.handle(request)

    @flask.get("/healthz")
    def healthz() -> Response:
        return jsonify(status="ok")

    @flask.get("/readyz")
    def readyz() -> tuple[Response, int]:
        alive = bot.service.is_alive()
        return jsonify(status="ok" if alive else "unavailable", service="ok" if alive else "not reached"), (
            200 if alive else 503
        )

    @flask.errorhandler(HTTPException)
    def refused(error: HTTPException) -> Response:
        return refusal(error.code or 500, error.name)

    @flask.errorhandler(Exception)
    def broken(error: Exception) -> Response:
        request_id = ids.incident_id()
        log.error("request_failed", id=request_id, exc_info=error)
        return refusal(400, f"cannot be read (id {request_id})")

    return flask


def refusal(status: int, words: str) -> Response:
    response = jsonify(error=words)
    response.status_code = status
    return response
