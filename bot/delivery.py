"""Bringing a message to Slack, and saying it more plainly when Slack refuses the rich form."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

import structlog
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient

from bot import limits
from bot.blocks.message import Message

log = structlog.get_logger(__name__)

POST_TIMEOUT_S = 10
TRIES = 4
PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

Payload = dict[str, Any]


class Fate(Enum):
    """What became of one attempt."""

    DELIVERED = auto()
    REFUSED = auto()  # this payload never; a plainer one perhaps
    GONE = auto()  # nothing will get there any more
    LATER = auto()  # not now; the same payload again


@dataclass(frozen=True, slots=True)
class Attempt:
    fate: Fate
    reason: str = ""
    wait_s: float = PAUSE_S


class Destination(Protocol):
    """A place that messages go to; there, `private` is for the asker's eyes only."""

    def post(self, payload: Payload, *, private: bool) -> Attempt: ...


@dataclass(frozen=True, slots=True)
class ResponseUrl:
    """The answer to a command or a press: takes five messages within half an hour, from anywhere the bot was called.

    With `replace` the message that was pressed gives way to the answer; what is private (a problem) stands beside it.
    """

    url: str
    public: bool = False
    replace: bool = False

    def post(self, payload: Payload, *, private: bool) -> Attempt:
        body = {key: value for key, value in payload.items() if key != "metadata"}
        body["response_type"] = "in_channel" if self.public and not private else "ephemeral"
        body["replace_original"] = self.replace and not private
        try:
            response = WebhookClient(self.url, timeout=POST_TIMEOUT_S, retry_handlers=[]).send_dict(body)
        except (OSError, http.client.HTTPException) as error:
            return Attempt(Fate.LATER, repr(error))
        return judge(response.status_code, response.body, response.headers.get("retry-after"))


@dataclass(frozen=True, slots=True)
class Conversation:
    """A channel, a thread in it, or a person's direct messages (their user id), through the Web API.

    `asker` is who alone sees what is private in a channel.
    """

    client: WebClient
    channel: str
    thread_ts: str | None = None
    asker: str | None = None

    def post(self, payload: Payload, *, private: bool) -> Attempt:
        said = {"channel": self.channel, "thread_ts": self.thread_ts, **payload}
        try:
            if private and self.asker:
                said.pop("metadata", None)
                self.client.chat_postEphemeral(user=self.asker, **said)
            else:
                self.client.chat_postMessage(unfurl_links=False, **said)
        except SlackApiError as error:
            return judge_api(error)
        except (OSError, http.client.HTTPException) as error:
            return Attempt(Fate.LATER, repr(error))
        return Attempt(Fate.DELIVERED)


def judge(status: int, body: str, retry_after: str | None) -> Attempt:
    """What a `response_url` answered. Slack says why in the body: `invalid_blocks`, `used_url`, `expired_url` …"""
    reason = f"{status} {_error_word(body)}"
    if status == 429:
        return Attempt(Fate.LATER, reason, _wait_s(retry_after))
    if status >= 500:
        return Attempt(Fate.LATER, reason)
    if status == 400:
        return Attempt(Fate.REFUSED, reason)
    if status != 200 or _says_not_ok(body):
        return Attempt(Fate.GONE, reason)
    return Attempt(Fate.DELIVERED)


def judge_api(error: SlackApiError) -> Attempt:
    response = error.response
    word = str(response.get("error") or response.status_code)
    if response.status_code == 429 or word == "ratelimited":
        return Attempt(Fate.LATER, word, _wait_s(response.headers.get("Retry-After")))
    if response.status_code >= 500:
        return Attempt(Fate.LATER, word)
    about_payload = word.startswith(("invalid_block", "msg_", "invalid_attach", "only_one_table", "invalid_metadata"))
    return Attempt(Fate.REFUSED if about_payload else Fate.GONE, word)


class Courier:
    """Delivers to the first destination that takes the message in any of its forms.

    Not every Slack draws charts. Once one was refused and the same message taken without it, none is sent any more.
    """

    def __init__(self, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._charts = True

    def deliver(self, message: Message, *destinations: Destination, request_id: str) -> bool:
        for destination in destinations:
            refused_charts = False
            for payload in message.payloads(charts=self._charts):
                attempt = self._post(destination, payload, private=message.private)
                if attempt.fate is Fate.DELIVERED:
                    self._charts = self._charts and not (refused_charts and not _has_charts(payload))
                    return True
                refused_charts = refused_charts or _has_charts(payload)
                log.warning(
                    "message_not_taken",
                    id=request_id,
                    by=type(destination).__name__,
                    fate=attempt.fate.name.lower(),
                    reason=attempt.reason,
                )
                if attempt.fate is not Fate.REFUSED:
                    break
        log.error("message_lost", id=request_id)
        return False

    def _post(self, destination: Destination, payload: Payload, *, private: bool) -> Attempt:
        attempt = destination.post(payload, private=private)
        for _ in range(TRIES - 1):
            if attempt.fate is not Fate.LATER:
                break
            self._sleep(min(attempt.wait_s, LONGEST_PAUSE_S))
            attempt = destination.post(payload, private=private)
        return attempt


def _has_charts(payload: Payload) -> bool:
    return any(block["type"] == "data_visualization" for block in payload.get("blocks", []))


def _wait_s(retry_after: str | None) -> float:
    text = retry_after or ""
    return float(text) if text.isascii() and text.isdigit() else limits.POST_PAUSE_S


def _error_word(body: str) -> str:
    try:
        document = json.loads(body)
    except ValueError:
        return body[:100]
    return str(document.get("error", ""))[:100] if isinstance(document, dict) else body[:100]


def _says_not_ok(body: str) -> bool:
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("ok") is False
