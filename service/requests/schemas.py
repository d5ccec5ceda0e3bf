"""The doors of a sizing request: JSON, text by key, or one line of text, each into a checked `SizingRequest`.

Every door raises `InvalidInput` with all errors at once: unknown keys, wrong types, values out of range, and
combinations that cannot be. One marshmallow schema, built from the vocabulary, checks them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import Schema, ValidationError

from service.engine.errors import FieldError, InvalidInput
from service.requests.grammar import read_command
from service.requests.json_fields import FIELD_OF
from service.requests.keys import KEYS, KNOWN_KEYS, MOST_ERRORS, nearest_keys
from service.requests.objects import shown
from service.requests.request import SizingRequest
from service.requests.rules import combination_errors
from service.requests.shorthands import UnknownWord, assignments, contradictions, key_named
from service.requests.text_values import Misread
from service.requests.tokens import normalise
from service.requests.vocabulary import as_name

#: The request as marshmallow and OpenAPI see it.
SizingRequestSchema = Schema.from_dict(
    {key.name: FIELD_OF[key.kind](key) for key in KEYS.values()}, name="SizingRequestSchema"
)
_SCHEMA = SizingRequestSchema()


def load_request(mapping: Mapping[str, Any]) -> SizingRequest:
    """A request from JSON: numbers are numbers, words are words; null is a key that is not given.

    `{"command": text}` is read by the command grammar and stands alone. Raises InvalidInput.
    """
    if not isinstance(mapping, Mapping):
        raise InvalidInput([FieldError("", "the request is not a JSON object", shown(mapping), "an object of keys")])
    if mapping.get("command") is not None:
        return _load_command(mapping)
    values, errors = _check(mapping)
    return _finish(values, errors, as_asked=mapping)


def load_text_request(mapping: Mapping[str, str]) -> SizingRequest:
    """A request whose values are all text: a query string or a form. Short words and shorthands are keys too.

    Its `as_asked` is the JSON request that the text means. Raises InvalidInput.
    """
    meant: dict[str, Any] = {}
    errors: list[FieldError] = []
    for word, text in mapping.items():
        try:
            chosen = assignments(word, normalise(text).strip())
        except UnknownWord:
            errors.append(_unknown_key(word, text, text_words=len(errors) < MOST_ERRORS))
        except Misread as misread:
            errors.append(_misread(word, text, misread))
        else:
            errors.extend(contradictions(meant, chosen))
            meant.update((key.name, value) for key, value in chosen)
    if meant.get("command") is not None and not errors:
        return load_request(meant)
    refused = {error.pointer for error in errors}
    values, more = _check(meant)
    return _finish(values, [*errors, *(error for error in more if error.pointer not in refused)], as_asked=meant)


def load_command(text: str) -> SizingRequest:
    """A request from one line of text; its errors carry the position of the word in the normalised text."""
    return load_request({"command": text})


def _load_command(mapping: Mapping[str, Any]) -> SizingRequest:
    others = [name for name, value in mapping.items() if name != "command" and value is not None]
    errors = [
        FieldError(f"/{name}", f"{name} stands beside command", shown(mapping[name]), "command alone, or keys alone")
        for name in others[:MOST_ERRORS]
    ]
    if not isinstance(mapping["command"], str):
        errors.append(FieldError("/command", "command is not text", shown(mapping["command"]), KEYS["command"].allowed))
    if errors:
        raise InvalidInput(errors)
    command = read_command(mapping["command"])
    values, wrong = _check(command.request)
    refused = {error.pointer for error in command.errors}
    try:
        return _finish(
            {**values, "command": mapping["command"]},
            [*command.errors, *(error for error in wrong if error.pointer not in refused)],
            as_asked=mapping,
        )
    except InvalidInput as invalid:
        raise InvalidInput(command.placed(error) for error in invalid.errors) from None


def _check(mapping: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """The values that are right by themselves, and an error for each of the others."""
    try:
        return _SCHEMA.load(mapping), []
    except ValidationError as refused:
        messages = refused.messages_dict
        errors = [error for name in _in_order(messages) for error in _field_errors(name, messages[name], mapping)]
        return refused.valid_data, errors  # type: ignore[return-value]


def _in_order(messages: Mapping[str, Any]) -> Sequence[str]:
    """Keys in the order of the vocabulary, unknown ones last and not too many of them."""
    unknown = sorted(str(name) for name in messages if name not in KEYS)
    return [*(name for name in KEYS if name in messages), *unknown[:MOST_ERRORS]]


def _field_errors(name: str, messages: Sequence[Any], mapping: Mapping[str, Any]) -> list[FieldError]:
    if name not in KEYS:
        return [_unknown_key(name, mapping.get(name))]
    return [error for error in messages if isinstance(error, FieldError)]


def _finish(values: Mapping[str, Any], errors: list[FieldError], *, as_asked: Mapping[str, Any]) -> SizingRequest:
    """The request, when neither its values nor their combination are wrong."""
    model = values.get("model")
    if model is None and not any(error.pointer.startswith(("/model", "/command")) for error in errors):
        errors.append(FieldError("/model", "model is missing", None, KEYS["model"].allowed))
    request = SizingRequest(**{**values, "model": model or "", "as_asked": dict(as_asked)})
    errors.extend(combination_errors(request))
    if errors:
        raise InvalidInput(errors)
    return request


def _unknown_key(word: str, value: Any, *, text_words: bool = False) -> FieldError:
    suggestions = nearest_keys(word, text=text_words)
    return FieldError(
        f"/{word[:80]}", f"{shown(word)} is not a key of a request", shown(value), KNOWN_KEYS, suggestions
    )


def _misread(word: str, text: str, misread: Misread) -> FieldError:
    key = key_named(word)
    name = key.name if key else as_name(word)
    return FieldError(f"/{name}", f"{name} {misread}", shown(text), key.allowed if key else None, misread.suggestions)
