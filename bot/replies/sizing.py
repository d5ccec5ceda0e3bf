"""Sizing a run: from typed words, from a changed question, or reading one back."""

from __future__ import annotations

from typing import Any

import structlog

from bot.blocks.change import change_lead
from bot.blocks.decision import decision_line
from bot.blocks.message import Message
from bot.blocks.sizing import sizing_message
from bot.replies.question import Question, Sources, request_of
from bot.service_errors import ServiceError

log = structlog.get_logger(__name__)

Sizing = dict[str, Any]


def sized(sources: Sources, question: Question, request: dict[str, Any]) -> Sizing:
    """Asks the service, which records the answer."""
    sizing = sources.service.create_sizing(request, question.call, key=question.key)
    log.info("sized", id=question.request_id, sizing=sizing.get("id"), asker=question.asker.on_behalf_of)
    return sizing


def typed(sources: Sources, question: Question) -> Message:
    return sizing_message(sized(sources, question, {"command": question.text}), sources.links)


def shown(sources: Sources, question: Question, identifier: str) -> Message:
    sizing = sources.service.read_sizing(identifier, question.call)
    return sizing_message(sizing, sources.links, standing=standing(sources, question, sizing))


def standing(sources: Sources, question: Question, sizing: Sizing) -> str:
    """The last decision on it; an answer is worth showing without one, too."""
    try:
        made = sources.service.decisions_on(sizing["id"], question.call)
    except ServiceError as error:
        log.warning("decisions_not_read", id=question.request_id, cause=error.cause)
        return ""
    return decision_line(made[-1], sizing["model"]["name"]) if made else ""


def what_if(sources: Sources, question: Question, identifier: str, lever: str) -> Message:
    """The same question with one lever pulled, the n-th of the sizing; says what it was and what it is now."""
    before = sources.service.read_sizing(identifier, question.call)
    pulled = before["levers"][int(lever)]
    after = sized(sources, question, request_of(before) | pulled["change"])
    return sizing_message(after, sources.links, lead=change_lead(pulled["lever"], before, after))


def on_gpu(sources: Sources, question: Question, identifier: str, gpu: str) -> Message:
    """The same question on another GPU."""
    before = sources.service.read_sizing(identifier, question.call)
    after = sized(sources, question, request_of(before) | {"gpu": gpu})
    return sizing_message(after, sources.links, lead=change_lead(f"gpu={gpu}", before, after))


def for_channel(sources: Sources, question: Question, identifier: str) -> Message:
    """For everybody in the channel: the answer, who shared it, and what everybody may press."""
    sizing = sources.service.read_sizing(identifier, question.call)
    made = standing(sources, question, sizing)
    return sizing_message(sizing, sources.links, standing=made, shared_by=question.asker.user)
