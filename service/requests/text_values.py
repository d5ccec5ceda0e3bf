"""Reading one value from text: what commands, query strings and flags share.

Text is turned into the JSON value it means ("8k" into 8192, "full:20" into {"full_layers": 20}); whether that value is
in range is checked afterwards, by the same fields that check JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from service.engine.errors import nearest
from service.engine.units import read_parameters, read_tokens
from service.requests.objects import shown
from service.requests.vocabulary import AUTO, Key

NONE = "none"
TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})

_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_NUMBER = re.compile(r"([+-]?\d{1,20}(?:\.\d{0,20})?(?:e[+-]?\d{1,3})?)(%?)", re.ASCII)
_FULL_LAYERS = re.compile(r"full\s*:\s*(\d{1,40})", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+", re.ASCII)


class Misread(ValueError):
    """Text that is no value of its key. The message completes a sentence that starts with the key's name."""

    def __init__(self, problem: str, *suggestions: str) -> None:
        super().__init__(problem)
        self.suggestions = suggestions


def read_text(key: Key, text: str) -> Any:
    """The JSON value that a text means for a key; lists are split at commas. Raises Misread."""
    text = text.strip()
    if text[:1] in "{[" and text and key.kind in ("model", "gpu", "choice", "words", "integers"):
        return read_json(text)
    if key.is_list:
        return read_items(key, [item.strip() for item in text.split(",")])
    return _READERS[key.kind](key, text)


def read_items(key: Key, items: Sequence[str]) -> Any:
    """The JSON value that comma-separated items mean for a key that takes several. Raises Misread."""
    if any(not item for item in items):
        raise Misread("has an empty item")
    if key.kind == "gpu":
        return items[0] if len(items) == 1 else list(items)
    if list(items) == [NONE] and key.fewest == 0:
        return []
    if key.kind == "integers":
        return [_integer(key, item) for item in items]
    words = [_spelled(key, item) for item in items]
    return words[0] if len(words) == 1 and words[0] in key.whole else words


def read_json(text: str) -> Any:
    """JSON text inside a command or a query, with the strictness of a JSON body. Raises Misread."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, (json.JSONDecodeError, Misread)) else "a number or depth too large"
        raise Misread(f"is not JSON: {problem}") from None


def _refuse_constant(name: str) -> None:
    raise Misread(f"{name} is no JSON number")


def _integer(key: Key, text: str) -> int | str:
    if key.auto and text.lower() == AUTO:
        return AUTO
    if _THOUSANDS.fullmatch(text):
        raise Misread("is written with commas", text.replace(",", ""))
    if key.suffixes == "none":
        if _WHOLE_NUMBER.fullmatch(text) is None:
            raise Misread(f"cannot be {shown(text)}", *(nearest(text, (AUTO,)) if key.auto else ()))
        return int(text)
    try:
        return read_tokens(text) if key.suffixes == "binary" else read_parameters(text)
    except ValueError:
        unit = "K = 1024 and M = 1024²" if key.suffixes == "binary" else "K, M, B and T are thousands"
        raise Misread(f"cannot be {shown(text)} ({unit})") from None


def _number(key: Key, text: str) -> float:
    match = _NUMBER.fullmatch(text.lower())
    if match is None:
        raise Misread(f"cannot be {shown(text)}")
    return float(match[1]) / 100 if match[2] else float(match[1])


def _boolean(key: Key, text: str) -> bool:
    word = text.lower()
    if word in TRUE_WORDS or word in FALSE_WORDS:
        return word in TRUE_WORDS
    raise Misread(f"cannot be {shown(text)}", *nearest(word, ("true", "false")))


def _choice(key: Key, text: str) -> Any:
    if key.name == "recompute" and (match := _FULL_LAYERS.fullmatch(text.lower())):
        return {"full_layers": int(match[1])}
    return _spelled(key, text)


def _spelled(key: Key, text: str) -> str:
    """A word of the key in any case and with - or _; a word that is none of them comes back as it is."""
    word = text.lower().replace("_", "-")
    for choice in (*key.choices, *key.whole, *([AUTO] if key.auto else [])):
        if word == choice.replace("_", "-") or word == "-" + choice.replace("_", "-"):
            return choice if not word.startswith("-") else f"-{choice}"
    return key.spellings.get(text.lower(), key.spellings.get(word, text))


def _plain(key: Key, text: str) -> str:
    return text


_READERS = {
    "integer": _integer, "number": _number, "boolean": _boolean, "choice": _choice, "model": _plain, "text": _plain,
}  # fmt: skip
