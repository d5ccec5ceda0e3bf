"""Links to sizings, wherever somebody pastes one: five lines that everybody in the conversation sees."""

from __future__ import annotations

from typing import Any

import structlog
from slack_bolt import App
from slack_sdk import WebClient

from bot import ids
from bot.asker import Asker
from bot.blocks.unfurl import unfurl_blocks
from bot.desk import Desk
from bot.replies import Replies
from bot.service_client import Call
from bot.service_errors import ServiceError

log = structlog.get_logger(__name__)

MOST_LINKS = 5


def register(app: App, desk: Desk, replies: Replies) -> None:
    @app.event("link_shared")
    def link_shared(body: dict[str, Any], event: dict[str, Any], client: WebClient) -> None:
        call = Call(asker=Asker.of(body), request_id=ids.incident_id())
        urls = [link["url"] for link in event.get("links") or []][:MOST_LINKS]
        desk.show(lambda: unfurl(client, replies, call, event, urls), request_id=call.request_id)


def unfurl(client: WebClient, replies: Replies, call: Call, event: dict[str, Any], urls: list[str]) -> None:
    """What is no sizing, or cannot be read, stays a bare link."""
    unfurls = {url: {"blocks": blocks} for url in urls if (blocks := blocks_of(replies, call, url))}
    if unfurls:
        client.chat_unfurl(channel=event["channel"], ts=event["message_ts"], unfurls=unfurls)


def blocks_of(replies: Replies, call: Call, url: str) -> list[dict[str, Any]]:
    identifier = replies.sources.links.sizing_in(url)
    if identifier is None:
        return []
    try:
        return unfurl_blocks(replies.sources.service.read_sizing(identifier, call), replies.sources.links)
    except ServiceError as error:
        log.warning("link_not_unfurled", id=call.request_id, cause=error.cause)
        return []
