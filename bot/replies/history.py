"""What a person asked before."""

from __future__ import annotations

from typing import Any

from bot.blocks.history import history_message
from bot.blocks.message import Message
from bot.replies.question import Question, Sources

SHOWN = 5


def last(sources: Sources, question: Question) -> Message:
    return history_message(summaries(sources, question), sources.links)


def summaries(sources: Sources, question: Question) -> list[dict[str, Any]]:
    """Of the asker's last sizings, newest first."""
    return sources.service.sizings_of(question.asker, question.call, limit=SHOWN)


def last_identifier(sources: Sources, question: Question) -> str | None:
    found = sources.service.sizings_of(question.asker, question.call, limit=1)
    return str(found[0]["id"]) if found else None
