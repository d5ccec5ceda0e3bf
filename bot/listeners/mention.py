"""@trainmem in a channel or a thread, where commands cannot be typed: the same words, answered in the thread."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from slack_bolt import App
from slack_sdk import WebClient

from bot import ids
from bot.asker import Asker
from bot.delivery import Conversation
from bot.desk import Desk
from bot.recent import Recent
from bot.replies import Replies
from bot.replies.question import Question

_MENTION = re.compile(r"<@[A-Z0-9]+(?:\|[^>]*)?>")
_LINK = re.compile(r"<[^<>|]+\|([^<>]+)>")
_BARE_LINK = re.compile(r"<(https?://[^<>|]+)>")


def register(app: App, desk: Desk, replies: Replies) -> None:
    delivered = Recent()

    @app.event("app_mention")
    def mentioned(body: dict[str, Any], event: dict[str, Any], client: WebClient) -> None:
        if not delivered.is_new(body.get("event_id") or ""):
            return
        question = Question(
            text=words_of(event.get("text") or ""),
            asker=Asker.of(body),
            key=ids.idempotency_key(body.get("event_id"), "mention"),
            request_id=ids.incident_id(),
        )
        thread = Conversation(client, event["channel"], event.get("thread_ts") or event["ts"], question.asker.user)
        desk.take(lambda: replies.to_words(question), thread, request_id=question.request_id, heard=False)


def words_of(text: str) -> str:
    """What was typed: without the mention, and links that Slack made of names taken back."""
    typed = _BARE_LINK.sub(r"\1", _LINK.sub(r"\1", _MENTION.sub(" ", text)))
    return unescape(typed).strip()
