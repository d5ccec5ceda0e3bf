"""From what a person typed or pressed to the message they get. Knows the service and the blocks, not Slack's wires."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bot.blocks.help import help_message
from bot.blocks.message import Message
from bot.blocks.problems import problem_message
from bot.blocks.text import clean
from bot.replies import catalogue, comparison, explanation, history, sizing
from bot.replies.question import Question, Sources
from bot.service_errors import Rejected, ServiceError

log = structlog.get_logger(__name__)

Reply = Callable[[Sources, Question, str], Message]

#: The first word of a command; anything else is a run to be sized. Each gets the words behind it.
WORDS: dict[str, Reply] = {
    "help": lambda sources, question, rest: help_message(),
    "models": catalogue.models,
    "gpus": catalogue.gpus,
    "last": lambda sources, question, rest: history.last(sources, question),
    "compare": comparison.compared,
    "explain": explanation.explained_word,
    "why": explanation.explained_word,
}


class Replies:
    """Every reply. What the service cannot answer is a message, too; only a defect of ours raises."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def to_words(self, question: Question) -> Message:
        first, _, rest = clean(question.text).partition(" ")
        reply = WORDS.get(first.casefold() or "help")
        if reply is None:
            return self.to(question, sizing.typed)
        return self.to(question, reply, rest)

    def to(self, question: Question, reply: Callable[..., Message], *details: object) -> Message:
        """The reply, or the friendly form of whatever went wrong; the log has the cause under the same id."""
        try:
            return reply(self.sources, question, *details)
        except Rejected as error:
            log.info("refused", id=question.request_id, cause=error.cause)
            return problem_message(error, read=question.text, request_id=question.request_id)
        except ServiceError as error:
            log.error("service_failed", id=question.request_id, kind=type(error).__name__, cause=error.cause)
            return problem_message(error, read=question.text, request_id=question.request_id)
