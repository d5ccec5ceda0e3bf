"""JSON bodies beside the sizing request: marshmallow schemas whose errors are ours, all of them at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from service.engine.errors import FieldError, InvalidInput, nearest

LARGEST_BYTES = 2**53


class WholeNumber(fields.Integer):
    """A JSON number without a fraction in a range; neither text nor a boolean."""

    def __init__(self, least: int, most: int, **more: Any) -> None:
        super().__init__(validate=validate.Range(least, most), **more)
        self.allowed = f"a whole number from {least:,} to {most:,}"

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
            raise ma.ValidationError("is not a whole number")
        return int(value)


class Text(fields.String):
    """Text of a limited length, and not only spaces."""

    def __init__(self, longest: int, **more: Any) -> None:
        super().__init__(validate=[validate.Length(1, longest), _not_blank], **more)
        self.allowed = f"text of 1 to {longest:,} characters"


class Choice(fields.String):
    """One of some words."""

    def __init__(self, words: tuple[str, ...], **more: Any) -> None:
        super().__init__(validate=validate.OneOf(words), **more)
        self.words = words
        self.allowed = " or ".join(words)


def load(schema: ma.Schema, body: Any) -> dict[str, Any]:
    """The checked members of a body. Raises InvalidInput with everything that is wrong."""
    if not isinstance(body, Mapping):
        raise InvalidInput([FieldError("", "the body is not a JSON object", _shown(body), ", ".join(schema.fields))])
    try:
        loaded: dict[str, Any] = schema.load(body)
        return loaded
    except ma.ValidationError as refused:
        raise InvalidInput(_errors(refused.messages_dict, schema, body, "")) from None


def documented(schema: type[ma.Schema], *examples: dict[str, Any]) -> dict[str, Any]:
    """The body for the OpenAPI document."""
    named = {f"example{place}": {"value": value} for place, value in enumerate(examples, start=1)}
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": named}}}


def _errors(messages: Mapping[Any, Any], schema: ma.Schema, body: Any, at: str) -> Iterator[FieldError]:
    for name, found in messages.items():
        pointer, given = f"{at}/{str(name)[:80]}", body.get(name) if isinstance(body, Mapping) else None
        field = schema.fields.get(name)
        if isinstance(found, Mapping) and isinstance(field, fields.Nested):
            yield from _errors(found, field.schema, given, pointer)
            continue
        if field is None and name != ma.exceptions.SCHEMA:
            known = tuple(schema.fields)
            detail = f"{str(name)[:80]} is not a key here"
            yield FieldError(pointer, detail, _shown(given), ", ".join(known), nearest(str(name), known))
            continue
        near = nearest(given, field.words) if isinstance(field, Choice) and isinstance(given, str) else ()
        allowed = getattr(field, "allowed", None)
        for text in found if isinstance(found, list) else [found]:
            yield FieldError(pointer if field else at, _sentence(name, given, str(text)), _shown(given), allowed, near)


def _sentence(name: str, given: Any, text: str) -> str:
    if name == ma.exceptions.SCHEMA:
        return text
    if text.startswith("Missing"):
        return f"{name} is missing"
    if given is None:
        return f"{name} may not be null"
    return f"{name} {text}" if text[:1].islower() else f"{name} cannot be that"


def _not_blank(text: str) -> None:
    if text and not text.strip():
        raise ma.ValidationError("is blank")


def _shown(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)[:100]
