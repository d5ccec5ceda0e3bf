"""Deciding: who may presses Decide… under an answer and says what and why; everybody who saw the answer hears it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog
from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot import ids, texts
from bot.asker import Asker
from bot.blocks import decision, presses
from bot.blocks.problems import sentence
from bot.delivery import Conversation, Destination, ResponseUrl
from bot.desk import Desk
from bot.listeners import views
from bot.listeners.press import Press
from bot.replies import Replies
from bot.replies.question import Question
from bot.service_errors import Refused, Rejected, ServiceError

log = structlog.get_logger(__name__)


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.action(presses.DECIDE)
    def decide(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
        press = Press.of(body)
        view = partial(views.open_filled, client, replies, press, partial(filled, press=press))
        desk.show(view, *press.beside(client), request_id=press.question.request_id)
        ack()

    @app.view(decision.CALLBACK)
    def decided(ack: Ack, body: dict[str, Any], view: dict[str, Any], client: WebClient) -> None:
        question = Question(
            text="",
            asker=Asker.of(body),
            key=ids.idempotency_key(body.get("trigger_id"), decision.CALLBACK),
            request_id=ids.incident_id(),
        )
        origin = json.loads(view["private_metadata"])
        try:
            made = record(replies, question, origin, decision.read_decision(view))
        except Rejected as error:
            ack(response_action="errors", errors=decision.decision_errors(error))
            return
        except ServiceError as error:
            log.error("decision_not_recorded", id=question.request_id, cause=error.cause)
            ack(response_action="errors", errors={"decision": why_not(error, question.request_id)})
            return
        message = decision.decision_message(made, origin["model"], replies.sources.links)
        where = told_to(origin, question, client)
        desk.take(lambda: message, *where, request_id=question.request_id, heard=False)
        ack()


def filled(sizing: Mapping[str, Any], press: Press) -> dict[str, Any]:
    origin = {"response_url": press.response_url, "public": not press.private, "model": sizing["model"]["name"][:100]}
    return decision.decision_view(sizing, origin)


def record(replies: Replies, question: Question, origin: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    return replies.sources.service.decide(
        origin["sizing"], body, question.call, key=question.key, patience_s=views.PATIENCE_S
    )


def why_not(error: ServiceError, request_id: str) -> str:
    """For the form, which stays: who may not is told why, anything else has an id. Sent again it is recorded once."""
    words = error.detail if isinstance(error, Refused) else sentence(error)
    return f"{words} ({texts.INCIDENT_PLAIN.format(id=request_id)})"


def told_to(origin: Mapping[str, Any], question: Question, client: WebClient) -> list[Destination]:
    """Where the answer was seen: by all in the conversation if it was shared there, else by the one who decided."""
    shown: list[Destination] = []
    if origin.get("response_url"):
        shown.append(ResponseUrl(origin["response_url"], public=bool(origin.get("public"))))
    return [*shown, Conversation(client, question.asker.user)]
