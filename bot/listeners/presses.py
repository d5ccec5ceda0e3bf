"""Buttons and menus under an answer. Each is acknowledged at once; what it brings is queued like a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from slack_bolt import Ack, App
from slack_sdk import WebClient

from bot.blocks import presses
from bot.blocks.message import Message
from bot.delivery import Destination
from bot.desk import Desk
from bot.listeners.press import Press
from bot.replies import Replies, comparison, explanation, sizing

Work = Callable[[Replies, Press], Message]
Where = Callable[[Press, WebClient], tuple[Destination, ...]]


def register(app: App, desk: Desk, replies: Replies) -> None:
    def listen(action_id: str | re.Pattern[str], work: Work, where: Where) -> None:
        @app.action(action_id)
        def pressed(ack: Ack, body: dict[str, Any], client: WebClient) -> None:
            press = Press.of(body)
            request_id = press.question.request_id
            desk.take(lambda: work(replies, press), *where(press, client), request_id=request_id, heard=False)
            ack()

    listen(presses.SHARE, share, lambda press, client: press.for_all())
    listen(presses.COMPARE, compare, Press.beside)
    listen(presses.EXPLAIN, explain, Press.beside)
    listen(presses.EXPLAIN_TERM, explain_term, Press.in_place)
    listen(presses.WHAT_IF, pull_lever, Press.in_place)
    listen(presses.SHOW, show, Press.in_place)
    listen(presses.USE_GPU, use_gpu, Press.beside)
    listen(re.compile(rf"{presses.USE_SUGGESTION}:\d+"), use_suggestion, Press.in_place)

    @app.action(presses.OPEN)
    def opened(ack: Ack) -> None:
        """A link: the browser is on its way already, but Slack wants to hear that we know."""
        ack()


def share(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, sizing.for_channel, press.sizing_id)


def compare(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, comparison.compared_again, press.sizing_id)


def explain(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, explanation.explained, press.sizing_id)


def explain_term(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, explanation.explained, press.sizing_id, press.value)


def pull_lever(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, sizing.what_if, press.sizing_id, press.value)


def show(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, sizing.shown, press.value)


def use_gpu(replies: Replies, press: Press) -> Message:
    return replies.to(press.question, sizing.on_gpu, press.sizing_id, press.value)


def use_suggestion(replies: Replies, press: Press) -> Message:
    return replies.to_words(replace(press.question, text=press.value))
