"""Objects that a request carries whole (`model`, `gpu`): bounded here, understood by the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from service.engine.errors import FieldError

#: A config.json of Hugging Face has about 60 members; those with label maps or layer lists a few thousand.
MOST_VALUES = 20_000
MOST_DEPTH = 12
MOST_TEXT = 4_096
LARGEST_NUMBER = 2**63 - 1

_WHOLE = {"parameters": "a number of parameters", "hf_config": "an object", "architecture": "an object"}
MOST_PARAMETERS = 10**13


def shown(value: Any) -> str:
    """A value as the caller may recognise it, short enough for a message."""
    if isinstance(value, str):
        text = value if value.isprintable() else ascii(value)[1:-1]
    elif isinstance(value, Mapping):
        text = "an object with " + ", ".join(str(name) for name in list(value)[:5]) if value else "an empty object"
    elif value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        text = f"a number of about 10^{int(value.bit_length() * math.log10(2))}"
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:79] + "…"


def object_errors(pointer: str, value: Mapping[str, Any]) -> Iterator[FieldError]:
    """What makes an object too large, too deep or not JSON: the first such thing that is found."""
    left = MOST_VALUES
    stack: list[tuple[str, Any, int]] = [(pointer, value, 1)]
    while stack:
        place, container, depth = stack.pop()
        members = container.items() if isinstance(container, Mapping) else enumerate(container)
        left -= len(container)
        if left < 0 or depth > MOST_DEPTH:
            allowed = f"at most {MOST_VALUES:,} values, {MOST_DEPTH} levels deep"
            yield FieldError(pointer, f"{pointer[1:]} is too large or too deeply nested", None, allowed)
            return
        for name, item in members:
            if isinstance(item, (Mapping, list, tuple)):
                stack.append((f"{place}/{name}", item, depth + 1))
            elif (limit := _value_allowed(item)) is not None:
                yield FieldError(f"{place}/{name}", f"{name} is out of range", shown(item), limit)
                return


def _value_allowed(item: Any) -> str | None:
    """What is allowed instead of a text or a number that is too large; None when it is not."""
    if isinstance(item, str):
        return f"at most {MOST_TEXT:,} characters" if len(item) > MOST_TEXT else None
    if isinstance(item, (int, float)) and not -LARGEST_NUMBER <= item <= LARGEST_NUMBER:  # NaN is in no range
        return "a finite number that fits in 64 bits"
    return None


def model_errors(value: Mapping[str, Any]) -> Iterator[FieldError]:
    """What is wrong with the outside of a `model` object: exactly one of its three members, of the right type."""
    allowed = ", ".join(f"{name} ({what})" for name, what in _WHOLE.items())
    if len(value) != 1 or next(iter(value)) not in _WHOLE:
        yield FieldError(
            "/model",
            "a model object has exactly one member",
            shown(value),
            f"one of {allowed}",
            tuple(name for name in _WHOLE if name in value),
        )
        return
    name, inner = next(iter(value.items()))
    if name == "parameters":
        if isinstance(inner, bool) or not isinstance(inner, (int, float)) or not 1 <= inner <= MOST_PARAMETERS:
            yield FieldError(
                "/model/parameters",
                "parameters is not a count of parameters",
                shown(inner),
                f"a number from 1 to {MOST_PARAMETERS:,}",
            )
        elif inner != int(inner):
            yield FieldError("/model/parameters", "parameters is not a whole number", shown(inner), "a whole number")
    elif not isinstance(inner, Mapping):
        yield FieldError(f"/model/{name}", f"{name} is not an object", shown(inner), "an object")
