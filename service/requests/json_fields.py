"""One marshmallow field per kind of key: how JSON values are checked.

In JSON a number is a number and a word is a word: nothing is converted except a whole float (8192.0) to an integer.
Every error is a `FieldError`; what the value should have been, if it can be read as text, is its suggestion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from marshmallow import ValidationError, fields, missing

from service.engine.errors import FieldError, nearest
from service.requests.keys import MOST_ERRORS
from service.requests.objects import model_errors, object_errors, shown
from service.requests.request import FullLayers
from service.requests.text_values import Misread, read_text
from service.requests.vocabulary import AUTO, MOST_GPUS_COMPARED, Key

MOST_NAME = 200


class _KeyField(fields.Field[Any]):
    """A field that knows its row of the vocabulary. `json_schema` is what OpenAPI says about it."""

    def __init__(self, key: Key) -> None:
        super().__init__(
            required=key.name == "model",
            allow_none=True,
            metadata={"description": f"{key.meaning} (default: {key.default})", **self.json_schema(key)},
        )
        self.key = key

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        return {}

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """As marshmallow does, without its validators: `_deserialize` refuses what is wrong by itself."""
        if value is missing or value is None:
            return super().deserialize(value, attr, data, **kwargs)
        return self._deserialize(value, attr, data, **kwargs)

    def refuse(self, value: Any, problem: str, *suggestions: str, at: str = "") -> NoReturn:
        """Raise one error about this key. `problem` completes the sentence that starts with the key's name."""
        key = self.key
        raise ValidationError(
            [FieldError(key.pointer + at, f"{key.name} {problem}", shown(value), key.allowed, suggestions)]
        )

    def each(self, items: Iterable[Any], check: Callable[[Any, str], Any]) -> tuple[Any, ...]:
        """Check every item of a list, and raise the errors of all of them at once."""
        checked: list[Any] = []
        errors: list[Any] = []
        for index, item in enumerate(items):
            try:
                checked.append(check(item, f"/{index}"))
            except ValidationError as error:
                errors.extend(error.messages)
        if errors:
            raise ValidationError(errors[:MOST_ERRORS])
        return tuple(checked)

    def refuse_type(self, value: Any) -> NoReturn:
        """The value has the wrong type; say what it would be, if it can be read as text."""
        if isinstance(value, str):
            try:
                meant = read_text(self.key, value)
            except Misread:
                self.refuse(value, "is text", *(nearest(value, (AUTO,)) if self.key.auto else ()))
            written = shown(meant)
            self.refuse(value, f"is text; in JSON send {written} without quotes", written)
        self.refuse(value, "has the wrong type")


class IntegerField(_KeyField):
    """A whole number in the key's range, or "auto" where the key has it."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        number = {"type": "integer", "minimum": key.minimum, "maximum": key.maximum}
        return {"oneOf": [number, {"const": AUTO}, {"type": "null"}]} if key.auto else number

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int | str:
        if value == AUTO and self.key.auto:
            return AUTO
        return self.whole_number(value)

    def whole_number(self, value: Any, at: str = "") -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse_type(value)
        if not self.key.minimum <= value <= self.key.maximum:  # NaN is in no range
            self.refuse(value, "is out of range", at=at)
        if value != int(value):
            self.refuse(value, "is not a whole number", str(math.floor(value)), str(math.ceil(value)), at=at)
        return int(value)


class NumberField(_KeyField):
    """A finite number in the key's range."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        return {"type": "number", "minimum": key.minimum, "maximum": key.maximum}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse_type(value)
        if not self.key.minimum <= value <= self.key.maximum:  # NaN is in no range
            self.refuse(value, "is out of range")
        return float(value)


class BooleanField(_KeyField):
    """true or false; neither 0 and 1 nor text."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        return {"type": "boolean"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            self.refuse_type(value)
        return value


class ChoiceField(_KeyField):
    """One of the key's words; for `recompute` also {"full_layers": n}."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        words = {"type": "string", "enum": [*key.choices, *([AUTO] if key.auto else [])]}
        if key.name != "recompute":
            return words
        count = {"type": "object", "properties": {"full_layers": {"type": "integer"}}, "required": ["full_layers"]}
        return {"oneOf": [words, count, {"type": "null"}]}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | FullLayers:
        key = self.key
        if isinstance(value, str):
            if value in key.choices or (key.auto and value == AUTO):
                return value
            self.refuse(value, f"cannot be {shown(value)}", *choice_suggestions(key, value))
        if key.name == "recompute" and isinstance(value, Mapping):
            layers = value.get("full_layers")
            if set(value) != {"full_layers"} or isinstance(layers, bool) or not isinstance(layers, (int, float)):
                self.refuse(value, "is an object without a number full_layers")
            if not 0 <= layers <= key.maximum or layers != int(layers):
                self.refuse(layers, f"full_layers is not a whole number up to {key.maximum:,}", at="/full_layers")
            return FullLayers(int(layers))
        self.refuse_type(value)


class WordsField(_KeyField):
    """A list of the key's words, each at most once; or a word that stands for a whole list."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        listed = {"type": "array", "items": {"type": "string", "enum": list(item_choices(key))}, "maxItems": key.most}
        return {"oneOf": [{"enum": list(key.whole)}, listed, {"type": "null"}]} if key.whole else listed

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | tuple[str, ...]:
        key = self.key
        if isinstance(value, str):
            if value in key.whole:
                return value
            self.refuse(value, "is text, not a list", *choice_suggestions(key, value))
        if not isinstance(value, (list, tuple)):
            self.refuse_type(value)
        if not key.fewest <= len(value) <= key.most:
            self.refuse(value, f"has {len(value)} items")
        return tuple(dict.fromkeys(self.each(value, self.word)))

    def word(self, item: Any, at: str) -> str:
        if not isinstance(item, str) or item not in item_choices(self.key):
            self.refuse(item, f"cannot have {shown(item)}", *choice_suggestions(self.key, shown(item)), at=at)
        return item


class IntegersField(IntegerField):
    """A list of whole numbers, each in the key's range."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        items = {"type": "integer", "minimum": key.minimum, "maximum": key.maximum}
        return {"type": "array", "items": items, "minItems": key.fewest, "maxItems": key.most}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            self.refuse(value, "is not a list")
        if not self.key.fewest <= len(value) <= self.key.most:
            self.refuse(value, f"has {len(value)} items")
        return self.each(value, self.whole_number)


class NamedThingField(_KeyField):
    """`model` and `gpu`: a name, or an object whose inside the catalogue reads; for `gpu` also a list of both."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        one: list[dict[str, Any]] = [{"type": "string", "maxLength": MOST_NAME}, {"type": "object"}]
        if key.kind == "gpu":
            one.append({"type": "array", "items": {"oneOf": one[:]}, "minItems": 1, "maxItems": MOST_GPUS_COMPARED})
        return {"oneOf": one if key.kind == "model" else [*one, {"type": "null"}]}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if self.key.kind == "gpu" and isinstance(value, (list, tuple)):
            if not 1 <= len(value) <= MOST_GPUS_COMPARED:
                self.refuse(value, f"has {len(value)} items")
            return self.each(value, self.one)
        return self.one(value)

    def one(self, value: Any, at: str = "") -> Any:
        if isinstance(value, str):
            if not value.strip() or len(value) > MOST_NAME or not value.isprintable():
                self.refuse(value, f"is not a name of 1 to {MOST_NAME} printable characters", at=at)
            return value
        if not isinstance(value, Mapping):
            self.refuse(value, "has the wrong type", at=at)
        errors = list(object_errors(self.key.pointer + at, value))
        if self.key.kind == "model" and not errors:
            errors = list(model_errors(value))
        if errors:
            raise ValidationError(errors)
        return value


class TextField(_KeyField):
    """`command`: text that the grammar reads."""

    @staticmethod
    def json_schema(key: Key) -> dict[str, Any]:
        return {"type": "string", "maxLength": key.maximum}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            self.refuse(value, "is not text")
        return value


FIELD_OF = {
    "integer": IntegerField, "number": NumberField, "boolean": BooleanField, "choice": ChoiceField,
    "words": WordsField, "integers": IntegersField, "model": NamedThingField, "gpu": NamedThingField,
    "text": TextField,
}  # fmt: skip


def item_choices(key: Key) -> tuple[str, ...]:
    """The words a list may hold; a kernel may also be taken away with a leading minus."""
    return (*key.choices, *(f"-{word}" for word in key.choices)) if key.name == "kernels" else key.choices


def choice_suggestions(key: Key, word: str) -> tuple[str, ...]:
    """The choices nearest to a word; a spelling that text may use names its choice."""
    spelled = key.spellings.get(word.lower())
    if spelled is not None:
        return (spelled,)
    return nearest(word, (*key.choices, *key.whole, *([AUTO] if key.auto else [])))
