"""The form: opened by the bare command, by Change… and from the Home tab; what is wrong is said at the field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot import ids, limits, texts
from bot.asker import Asker
from bot.blocks import form, presses, quantities
from bot.blocks.catalogue import memory_words
from bot.blocks.elements import Element, option
from bot.delivery import Conversation, Destination, ResponseUrl
from bot.desk import Desk
from bot.listeners import views
from bot.listeners.press import Press
from bot.listeners.views import open_filled
from bot.replies import Replies, sizing
from bot.replies.question import Question, request_of
from bot.service_client import Call
from bot.service_errors import Rejected, ServiceError

log = structlog.get_logger(__name__)

MOST_OPTIONS = limits.SELECT_OPTIONS - 1


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.action(presses.NEW)
    def new(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
        press = Press.of(body)
        view = partial(open_empty, client, press.trigger_id, origin={})
        desk.show(view, *directly(client, press.question), request_id=press.question.request_id)
        ack()

    @app.action(presses.CHANGE)
    def change(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
        press = Press.of(body)
        fill = partial(filled, origin={"response_url": press.response_url})
        view = partial(open_filled, client, replies, press, fill)
        desk.show(view, *press.beside(client), request_id=press.question.request_id)
        ack()

    @app.view(form.CALLBACK)
    def submitted(ack: Ack, body: dict[str, Any], view: dict[str, Any], client: WebClient) -> None:
        question = submitted_question(body, view)
        errors = errors_at_fields(replies, question)
        if errors:
            ack(response_action="errors", errors=errors)
            return
        where = destinations(view, question, client)
        desk.take(lambda: replies.to(question, sizing.typed), *where, request_id=question.request_id, heard=False)
        ack()

    @app.options(form.MODEL)
    def model_options(ack: Ack, body: dict[str, Any]) -> None:
        ack(options=options(body, replies.sources.service.models, model_option))

    @app.options(form.GPU)
    def gpu_options(ack: Ack, body: dict[str, Any]) -> None:
        ack(options=options(body, replies.sources.service.gpus, gpu_option))


def open_empty(client: WebClient, trigger_id: str, origin: Mapping[str, Any]) -> None:
    client.views_open(trigger_id=trigger_id, view=form.form_view({}, origin))


def filled(sizing: Mapping[str, Any], origin: Mapping[str, Any]) -> form.View:
    request = request_of(sizing)
    return form.form_view(request, origin) if form.can_be_changed(request) else form.message_view(texts.FORM_OBJECT)


def submitted_question(body: Mapping[str, Any], view: Mapping[str, Any]) -> Question:
    return Question(
        text=form.read_form(view),
        asker=Asker.of(body),
        key=ids.idempotency_key(body.get("trigger_id"), form.CALLBACK),
        request_id=ids.incident_id(),
    )


def errors_at_fields(replies: Replies, question: Question) -> dict[str, str]:
    """Sizes while the form waits. An answer is recorded under the question's key, so asking again gives the same one;
    whatever else goes wrong is left to the message that follows.
    """
    try:
        replies.sources.service.create_sizing(
            {"command": question.text}, question.call, key=question.key, patience_s=views.PATIENCE_S
        )
    except Rejected as error:
        return form.form_errors(error)
    except ServiceError as error:
        log.info("form_not_waited_for", id=question.request_id, cause=error.cause)
    return {}


def destinations(view: Mapping[str, Any], question: Question, client: WebClient) -> list[Destination]:
    """Where the form was opened from, else the asker's direct messages."""
    response_url = json.loads(view.get("private_metadata") or "{}").get("response_url")
    first: list[Destination] = [ResponseUrl(response_url)] if response_url else []
    return [*first, *directly(client, question)]


def directly(client: WebClient, question: Question) -> tuple[Destination, ...]:
    return (Conversation(client, question.asker.user),)


def options(
    body: Mapping[str, Any], search: Callable[..., list[dict[str, Any]]], written: Callable[[dict[str, Any]], Element]
) -> list[Element]:
    """What was typed, then what the service finds under it."""
    typed = str(body.get("value") or "")
    call = Call(asker=Asker.of(body), request_id=ids.incident_id())
    try:
        found = search(typed, call, limit=MOST_OPTIONS, patience_s=views.PATIENCE_S)
    except ServiceError as error:
        log.error("no_options", id=call.request_id, cause=error.cause)
        found = []
    return [*form.typed_option(typed), *(written(item) for item in found)][: limits.SELECT_OPTIONS]


def model_option(item: dict[str, Any]) -> Element:
    size = quantities.parameters(item["parameters"]) if item.get("parameters") else ""
    return option(str(item["name"]), str(item["id"]), description=size or None)


def gpu_option(item: dict[str, Any]) -> Element:
    return option(str(item["name"]), str(item["id"]), description=memory_words(item))
