"""Errors of a question, placed where the person typed: on the field, or on the word of the command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.errors import FieldError, InvalidInput
from service.requests.grammar import read_command


@dataclass(frozen=True, slots=True)
class Marked:
    """A command with the words that could not be read: (text, is wrong) in turn."""

    parts: tuple[tuple[str, bool], ...]


def by_field(error: InvalidInput) -> dict[str, list[FieldError]]:
    """The errors by the key they are about; "" has those about no key of the form."""
    found: dict[str, list[FieldError]] = {}
    for one in error.errors:
        found.setdefault(one.pointer.lstrip("/").split("/")[0], []).append(one)
    return found


def marked(command: str, error: InvalidInput) -> Marked | None:
    """The command as it was read, with its wrong words marked; None if no error says where it is."""
    text = read_command(command).text
    starts = sorted({one.position for one in error.errors if one.position is not None and one.position < len(text)})
    if not starts:
        return None
    parts, end = [], 0
    for start in starts:
        if start < end:
            continue
        parts.append((text[end:start], False))
        word = text[start:].split(maxsplit=1)[0] if text[start:].strip() else text[start:]
        end = start + len(word)
        parts.append((text[start:end], True))
    parts.append((text[end:], False))
    return Marked(tuple(part for part in parts if part[0]))


def repairs(command: str, error: InvalidInput) -> dict[tuple[int | None, str], str]:
    """The command with one suggestion taken, by (position, suggestion), so that a person need only press it."""
    text = read_command(command).text
    repaired: dict[tuple[int | None, str], str] = {}
    for one in error.errors:
        if one.position is not None and one.given and text.startswith(one.given, one.position):
            before, after = text[: one.position], text[one.position + len(one.given) :]
            repaired |= {(one.position, word): f"{before}{word}{after}" for word in one.suggestions}
    return repaired


def asked(form: Mapping[str, Any]) -> dict[str, str]:
    """What a form sent, without the fields that were left empty."""
    return {name: text for name, text in form.items() if text.strip()}
