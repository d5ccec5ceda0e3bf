"""What a person is told when there is no answer: what was read, what would have been right, and an id to ask about."""

from __future__ import annotations

import math
import re

from bot import texts
from bot.blocks.elements import Block, Element, actions, button, context, section
from bot.blocks.message import Message
from bot.blocks.presses import USE_SUGGESTION
from bot.blocks.text import clip, code, escape, plain
from bot.service_errors import (
    Busy,
    FieldProblem,
    NotFound,
    NotKnown,
    Refused,
    Rejected,
    ServiceError,
    TimedOut,
    Unreachable,
)

ERRORS_SHOWN = 6
SUGGESTIONS_SHOWN = 3
SHORT_ALLOWED = 80
"""Beside the nearest spellings a longer list of what is allowed is only in the way."""


def problem_message(error: Exception, *, read: str, request_id: str) -> Message:
    """Any failure as a message. `read` is the text that was asked, as it came."""
    if isinstance(error, Rejected):
        return rejected_message(error, read=read, request_id=request_id)
    return incident_message(sentence(error), request_id)


def sentence(error: Exception) -> str:
    """What went wrong in one sentence of ours; nothing of the cause, which is for the log."""
    if isinstance(error, TimedOut):
        return texts.TIMED_OUT.format(seconds=f"{error.timeout_s:g}")
    if isinstance(error, Busy):
        return texts.BUSY.format(seconds=math.ceil(error.retry_after_s))
    if isinstance(error, NotKnown):
        return texts.NOT_KNOWN
    if isinstance(error, Refused):
        return texts.NOT_ALLOWED.format(detail=escape(clip(error.detail, 300)))
    if isinstance(error, NotFound):
        return texts.NOT_FOUND.format(detail=escape(clip(error.detail, 300)))
    if isinstance(error, Unreachable):
        return texts.UNREACHABLE
    return texts.FAULT if isinstance(error, ServiceError) else texts.BROKEN


def incident_message(words: str, request_id: str) -> Message:
    incident = texts.INCIDENT.format(id=request_id)
    return Message(
        text=f"{words} ({texts.INCIDENT_PLAIN.format(id=request_id)})",
        parts=(section(texts.WARNING.format(message=words)), context(incident)),
        private=True,
    )


def rejected_message(error: Rejected, *, read: str, request_id: str) -> Message:
    problems = error.errors or (FieldProblem(pointer="", detail=error.detail),)
    lines = [problem_line(problem) for problem in problems[:ERRORS_SHOWN]]
    title = (
        f"*{texts.REFUSED_TITLE}* {texts.REFUSED_READ.format(read=code(read))}" if read else f"*{texts.REFUSED_TITLE}*"
    )
    example = texts.REFUSED_EXAMPLE.format(command=texts.COMMAND, example=texts.EXAMPLE)
    foot = f"{texts.NOTHING_RECORDED} {texts.INCIDENT.format(id=request_id)}"
    listed = "\n".join(f"• {line}" for line in lines)
    return Message(
        text="\n".join(escape(plain(part)) for part in (title, *lines, example, foot)),
        parts=(
            section(texts.WARNING.format(message=title)),
            section(listed),
            *suggestion_buttons(problems, read),
            section(example),
            context(foot),
        ),
        private=True,
    )


def problem_line(problem: FieldProblem) -> str:
    """ "`gpu`: H1000 is not in the catalogue (read `H1000`; allowed: …); did you mean `H100`, `H200`?" """
    detail = escape(clip(without_place(problem), 600))
    allowed = problem.allowed if not problem.suggestions or len(problem.allowed or "") <= SHORT_ALLOWED else None
    extra = []
    if problem.given and not says(problem.detail, problem.given):
        extra.append(texts.REFUSED_GIVEN.format(given=code(problem.given, 60)))
    if allowed and not says(problem.detail, allowed):
        extra.append(texts.REFUSED_ALLOWED.format(allowed=escape(clip(allowed, 300))))
    line = f"{code(problem.key)}: {detail}" if problem.key else detail
    line += f" ({'; '.join(extra)})" if extra else ""
    if problem.suggestions and not all(says(problem.detail, word) for word in problem.suggestions):
        words = ", ".join(code(word, 60) for word in problem.suggestions[:SUGGESTIONS_SHOWN])
        line = f"{line.rstrip('.')}. " + texts.REFUSED_SUGGESTIONS.format(suggestions=words)
    return line


def without_place(problem: FieldProblem) -> str:
    """The sentence without "character 12: ": the key is named before it, and the whole text is shown."""
    named = problem.key not in ("", "command")
    return re.sub(r"\Acharacter \d+: ", "", problem.detail) if named else problem.detail


def says(sentence: str, words: str) -> bool:
    """Whether the sentence has these words whole: "H1000" does not say "H100"."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", sentence) is not None


def suggestion_buttons(problems: tuple[FieldProblem, ...], read: str) -> list[Block]:
    """A press for each nearest spelling that can be put in the place of what was read, when one thing was wrong."""
    if len(problems) != 1:
        return []
    problem = problems[0]
    buttons: list[Element] = []
    for suggestion in problem.suggestions[:SUGGESTIONS_SHOWN]:
        corrected = corrected_text(read, problem.given, suggestion)
        if corrected is not None and len(corrected) <= 2000:
            label = texts.USE_SUGGESTION.format(suggestion=suggestion)
            buttons.append(button(label, f"{USE_SUGGESTION}:{len(buttons)}", value=corrected))
    return [actions(buttons)] if buttons else []


def corrected_text(read: str, given: str | None, suggestion: str) -> str | None:
    """`read` with the one place that says `given` corrected, or None when that place is not plain.

    A suggestion that names its key ("tp=6") takes the place of key and value.
    """
    if not given:
        return None
    key, equals, _ = suggestion.partition("=")
    before = rf"{re.escape(key)}\s*[=:]?\s*" if equals else ""
    pattern = rf"(?<![\w.-]){before}{re.escape(given)}(?![\w.-])"
    places = list(re.finditer(pattern, read, re.IGNORECASE))
    if len(places) != 1:
        return None
    start, end = places[0].span()
    return read[:start] + suggestion + read[end:]
