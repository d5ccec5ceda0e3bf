"""The Home tab, drawn anew whenever somebody opens it."""

from __future__ import annotations

from typing import Any

import structlog
from slack_bolt import App
from slack_sdk import WebClient

from bot import ids, texts
from bot.asker import Asker
from bot.blocks.home import home_view
from bot.blocks.problems import sentence
from bot.desk import Desk
from bot.replies import Replies, history
from bot.replies.question import Question
from bot.service_errors import ServiceError

log = structlog.get_logger(__name__)


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.event("app_home_opened")
    def home_opened(body: dict[str, Any], event: dict[str, Any], client: WebClient) -> None:
        if event.get("tab") != "home":
            return
        question = Question(text="", asker=Asker.of(body), key="", request_id=ids.incident_id())
        desk.show(lambda: publish(client, replies, question), request_id=question.request_id)


def publish(client: WebClient, replies: Replies, question: Question) -> None:
    try:
        view = home_view(history.summaries(replies.sources, question), replies.sources.links)
    except ServiceError as error:
        log.error("home_without_sizings", id=question.request_id, cause=error.cause)
        note = f"{sentence(error)} {texts.INCIDENT.format(id=question.request_id)}"
        view = home_view([], replies.sources.links, note)
    client.views_publish(user_id=question.asker.user, view=view)
