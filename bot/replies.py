"""From what a person typed to the message they get. Knows the service and the blocks, not how Slack carries them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from bot.asker import Asker
from bot.blocks.help import help_message
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.problems import problem_message
from bot.blocks.sizing import sizing_message
from bot.blocks.text import clean
from bot.service_client import Call, ServiceClient
from bot.service_errors import Rejected, ServiceError

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What was typed, by whom; `key` is the same when the same press arrives twice."""

    text: str
    asker: Asker
    key: str
    request_id: str

    @property
    def call(self) -> Call:
        return Call(asker=self.asker, request_id=self.request_id)


class Replies:
    """Every reply to typed words; `answer` never raises."""

    def __init__(self, service: ServiceClient, links: Links) -> None:
        self._service = service
        self._links = links
        self._words: dict[str, Callable[[Question, str], Message]] = {"help": self._help}

    def answer(self, question: Question) -> Message:
        first, _, rest = clean(question.text).partition(" ")
        reply = self._words.get(first.casefold() or "help", self._sizing)
        return self.guarded(question, lambda: reply(question, rest))

    def guarded(self, question: Question, reply: Callable[[], Message]) -> Message:
        """The reply, or the friendly form of whatever went wrong; the log has the cause under the same id."""
        try:
            return reply()
        except Rejected as error:
            log.info("refused", id=question.request_id, cause=error.cause)
            return problem_message(error, read=question.text, request_id=question.request_id)
        except ServiceError as error:
            log.error("service_failed", id=question.request_id, kind=type(error).__name__, cause=error.cause)
            return problem_message(error, read=question.text, request_id=question.request_id)
        except Exception as error:
            log.exception("reply_failed", id=question.request_id)
            return problem_message(error, read=question.text, request_id=question.request_id)

    def _help(self, question: Question, rest: str) -> Message:
        return help_message()

    def _sizing(self, question: Question, rest: str) -> Message:
        sizing = self._service.create_sizing({"command": question.text}, question.call, key=question.key)
        log.info("sized", id=question.request_id, sizing=sizing.get("id"), asker=question.asker.on_behalf_of)
        return sizing_message(sizing, self._links)
