"""Why a term is as large as it is, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks.explanation import explanation_message
from bot.blocks.message import Message
from bot.blocks.notice import notice_message
from bot.replies.history import last_identifier
from bot.replies.question import Question, Sources


def explained(sources: Sources, question: Question, identifier: str, term: str | None = None) -> Message:
    """A term of a sizing; the largest per GPU when none is named."""
    sizing = sources.service.read_sizing(identifier, question.call)
    return explanation_message(sizing, term or largest_term(sizing), sources.links)


def explained_word(sources: Sources, question: Question, rest: str) -> Message:
    """`explain activations`, `explain sz_… weights`, `why sz_…`: of the asker's last sizing when none is named."""
    words = rest.split()
    identifier = next((word for word in words if word.startswith("sz_")), None)
    wanted = " ".join(word for word in words if word != identifier).casefold()
    identifier = identifier or last_identifier(sources, question)
    if identifier is None:
        return notice_message(texts.NO_SIZINGS_YET)
    term = term_called(wanted)
    if wanted and term is None:
        return notice_message(texts.UNKNOWN_TERM.format(terms=", ".join(f"`{name}`" for name in texts.TERMS.values())))
    return explained(sources, question, identifier, term)


def largest_term(sizing: Mapping[str, Any]) -> str:
    largest = max(sizing["per_gpu"]["terms"], key=lambda term: term["bytes"])
    return str(largest["term"])


def term_called(words: str) -> str | None:
    """ "moments" → optimizer_moments: a key or its words, or the beginning or a whole word of them."""
    for key, name in texts.TERMS.items():
        if words in (key, name):
            return key
    for key, name in texts.TERMS.items():
        if words and (name.startswith(words) or words in name.split()):
            return key
    return None
