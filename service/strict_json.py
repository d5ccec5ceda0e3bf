"""JSON as callers may send it, in a body or a line: nothing that other readers would understand differently."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from service.errors import FieldError, MalformedBody

DEEPEST = 32


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Raises MalformedBody for anything that RFC 8259 leaves open or a database cannot keep:
    NaN and infinities, a name that is given twice, nesting deeper than any request, half a surrogate pair, U+0000.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError:
        raise MalformedBody(f"The body is nested deeper than {DEEPEST} levels.") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, or a number of more than 4,300 digits
        raise MalformedBody(f"The body is not JSON: {error}.") from None
    _check(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedBody(f"The body is not JSON: {name} is no JSON number.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        given = " and ".join(json.dumps(value)[:40] for name, value in pairs if name == twice)
        error = FieldError(f"/{twice[:100]}", f"{twice[:100]} is given twice", given, "each key once")
        raise MalformedBody(f"The body names {twice[:100]} twice.", errors=[error])
    return members


def _check(value: Any) -> None:
    """Walk without recursion: the depth is what is being checked."""
    level = [value]
    for _ in range(DEEPEST):
        texts = [item for item in level if isinstance(item, str)]
        texts += [name for item in level if isinstance(item, dict) for name in item]
        for text in texts:
            _check_text(text)
        inside = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = [item for items in inside for item in items]
        if not level:
            return
    raise MalformedBody(f"The body is nested deeper than {DEEPEST} levels.")


def _check_text(text: str) -> None:
    if "\0" in text:
        raise MalformedBody("The body has the character U+0000, which no name or text needs.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MalformedBody("The body has half of a surrogate pair (\\ud800 to \\udfff) on its own.") from None
