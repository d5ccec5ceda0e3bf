"""A request as one line of command text, in the short words that people type. `parse(render(x))` gives `x` back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.engine.errors import InvalidInput
from service.engine.units import format_tokens
from service.requests.grammar import parse
from service.requests.keys import KEYS
from service.requests.vocabulary import Key

_LARGE = (("T", 10**12), ("B", 10**9), ("M", 10**6))
_METHODS_WITH_RANK = ("lora", "qlora")


def render(request: Mapping[str, Any]) -> str:
    """The canonical command for a flat JSON request; null members are left out. Unknown keys raise KeyError."""
    given = {name: value for name, value in request.items() if value is not None}
    for name in given:
        KEYS[name]
    if "command" in given:
        return str(given["command"])
    return " ".join(_words(given))


def _words(given: dict[str, Any]) -> Iterator[str]:
    left = dict(given)
    for name in KEYS:
        if name not in left:
            continue
        both = {name: left[name]}
        short = None
        if name == "gpu" and "gpus" in left:
            both["gpus"] = left["gpus"]
            short = f"{left['gpus']}x{left['gpu']}"
        elif name == "method" and "lora_rank" in left and left["method"] in _METHODS_WITH_RANK:
            both["lora_rank"] = left["lora_rank"]
            short = f"{left['method']}={left['lora_rank']}"
        elif name == "model":
            short = str(left["model"])
        if short is not None and _means(short, both):
            yield short
            for taken in both:
                del left[taken]
        else:
            yield _word(KEYS[name], left.pop(name))


def _word(key: Key, value: Any) -> str:
    """`key=value`, as short as it still means the same."""
    word = key.words[0] if key.words else key.name
    for text in _spellings(key, value):
        if _means(f"{word}={text}", {key.name: value}):
            return f"{word}={text}"
    return f"{word}={json.dumps(value)}"


def _spellings(key: Key, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, int) and key.suffixes == "binary":
        yield format_tokens(value)
    elif isinstance(value, int) and key.suffixes == "decimal":
        yield from (f"{value // scale}{suffix}" for suffix, scale in _LARGE if value and value % scale == 0)
    elif isinstance(value, Mapping) and list(value) == ["full_layers"]:
        yield f"full:{value['full_layers']}"
    elif isinstance(value, (list, tuple)):
        yield ",".join(str(item) for item in value) if value else "none"
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield str(value)


def _means(text: str, request: Mapping[str, Any]) -> bool:
    """Whether a piece of text by itself says exactly this."""
    try:
        return parse(text) == request
    except InvalidInput:
        return False
