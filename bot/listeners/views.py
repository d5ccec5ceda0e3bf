"""Views over a message: opened at once, because a trigger lives three seconds, and filled when the sizing is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from slack_sdk import WebClient

from bot import limits, texts
from bot.blocks import form
from bot.blocks.problems import sentence
from bot.listeners.press import Press
from bot.replies import Replies
from bot.service_errors import ServiceError

log = structlog.get_logger(__name__)

PATIENCE_S = limits.ACK_S - 0.8
"""How long the service may take while a submitted form waits; what takes longer is answered by a message."""

Fill = Callable[[Mapping[str, Any]], form.View]


def open_filled(client: WebClient, replies: Replies, press: Press, fill: Fill) -> None:
    """Opens a view that says to wait, then shows what `fill` makes of the sizing that was pressed."""
    opened = client.views_open(trigger_id=press.trigger_id, view=form.message_view(texts.FORM_LOADING))
    try:
        view = fill(replies.sources.service.read_sizing(press.sizing_id, press.question.call))
    except ServiceError as error:
        log.error("form_not_filled", id=press.question.request_id, cause=error.cause)
        view = form.message_view(f"{sentence(error)} {texts.INCIDENT.format(id=press.question.request_id)}")
    client.views_update(view_id=opened["view"]["id"], view=view)
