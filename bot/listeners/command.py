"""`/trainmem …`, anywhere in Slack. The answer is for the asker's eyes only."""

from __future__ import annotations

from typing import Any

from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot import ids, texts
from bot.asker import Asker
from bot.delivery import Conversation, ResponseUrl
from bot.desk import Desk
from bot.replies import Question, Replies


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.command(texts.COMMAND)
    def answer_command(ack: Ack, command: dict[str, Any], client: WebClient) -> None:
        question = Question(
            text=command.get("text") or "",
            asker=Asker.of(command),
            key=ids.idempotency_key(command.get("trigger_id")),
            request_id=ids.incident_id(),
        )
        heard = desk.take(
            lambda: replies.answer(question),
            ResponseUrl(command["response_url"]),
            Conversation(client, question.asker.user),
            request_id=question.request_id,
        )
        ack(heard)
