"""`/trainmem …`, anywhere in Slack. The answer is for the asker's eyes only; without words the form opens."""

from __future__ import annotations

from functools import partial
from typing import Any

from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot import ids, texts
from bot.asker import Asker
from bot.blocks.text import clean
from bot.delivery import Conversation, ResponseUrl
from bot.desk import Desk
from bot.listeners.forms import open_empty
from bot.replies import Replies
from bot.replies.question import Question


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.command(texts.COMMAND)
    def answer_command(ack: Ack, command: dict[str, Any], client: WebClient) -> None:
        question = Question(
            text=command.get("text") or "",
            asker=Asker.of(command),
            key=ids.idempotency_key(command.get("trigger_id")),
            request_id=ids.incident_id(),
        )
        where = ResponseUrl(command["response_url"]), Conversation(client, question.asker.user)
        if not clean(question.text):
            origin = {"response_url": command["response_url"]}
            view = partial(open_empty, client, command.get("trigger_id") or "", origin)
            desk.show(view, *where, request_id=question.request_id)
            ack()
            return
        ack(desk.take(lambda: replies.to_words(question), *where, request_id=question.request_id))
