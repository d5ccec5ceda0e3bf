"""One line of text as tokens: words, quoted words, JSON, equals signs and commas, each with its place.

Phones and chat programs rewrite what people type: curly quotes, long dashes, no-break spaces, full-width digits. All
of it is folded to plain characters first (Unicode NFKC and the table below), and every place that is told to a person
counts characters of that normalised text from 0. Splitting takes time linear in the length of the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from service.requests.keys import MOST_CHARACTERS, find_key
from service.requests.shorthands import SHORTHANDS
from service.requests.text_values import Misread

#: Putting combining marks in order takes time quadratic in the length of their run; no request needs many.
MOST_MARKS = 64

_FOLDED = str.maketrans(
    dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‘’‚‛′´", "'")
    | dict.fromkeys("‐‑‒–—―−﹘", "-")
    | dict.fromkeys("×✕✖⨯", "x")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad")
)
_SPACE = re.compile(r"[\s;]+|-+(?=\s|$)")
_WORD_START = re.compile(r"[^\s=,;:\"]+")
_WORD_REST = re.compile(r"[^\s=,;\"]*")
_DECODER = json.JSONDecoder()

Kind = Literal["word", "quoted", "json", "equals", "comma"]


class Token(NamedTuple):
    """`text` without its quotes (of JSON: its source), which stood at `start` up to `end` of the normalised text."""

    kind: Kind
    text: str
    start: int
    end: int


class Unfinished(ValueError):
    """A quote or a JSON object that starts at `position` and does not end, or is no JSON."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(problem)
        self.position = position


def normalise(text: str) -> str:
    """The text as the grammar reads it. Raises Misread when it is too long or made of combining marks."""
    if not text.isascii():
        if sum(unicodedata.category(character).startswith("M") for character in text) > MOST_MARKS:
            raise Misread(f"has more than {MOST_MARKS} combining marks")
        # NFKC turns ´ and … into a space and dots; quotes, dashes and crosses are folded before it sees them.
        text = unicodedata.normalize("NFKC", text.translate(_FOLDED)).translate(_FOLDED)
    if len(text) > MOST_CHARACTERS:
        raise Misread(f"has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    return text


def without_outer_quotes(text: str) -> str:
    """The text with a pair of quotes around the whole of it blanked; places stay as they are."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip()) - 1
    quote = text[start : start + 1]
    if end > start and quote in ('"', "'", "`") and text.find(quote, start + 1) == end:
        return f"{text[:start]} {text[start + 1 : end]} {text[end + 1 :]}"
    return text


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a normalised text, in order. Raises Unfinished where the rest cannot be split."""
    at, before = 0, Token("comma", "", 0, 0)
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        before = _token(text, at, before)
        yield before
        at = before.end


def _token(text: str, at: int, before: Token) -> Token:
    character = text[at]
    # A colon assigns only behind a word that is a key: "ctx:128K", but "llama3.1:70b" and "H100:8".
    if character == "=" or (character == ":" and before.kind == "word" and _names_key(before.text)):
        return Token("equals", character, at, at + 1)
    if character == ",":
        return Token("comma", ",", at, at + 1)
    if character in "\"'`":
        return _quoted(text, at)
    if character == "{" or (character == "[" and before.kind == "equals"):
        return _json(text, at)
    start = _WORD_START.match(text, at)
    end = start.end() if start else at + 1
    if not (text.startswith(":", end) and _names_key(text[at:end])):
        rest = _WORD_REST.match(text, end)
        end = rest.end() if rest else end
    return Token("word", text[at:end], at, end)


def _quoted(text: str, at: int) -> Token:
    quote = text[at]
    if quote == '"':
        try:
            inner, end = json.decoder.scanstring(text, at + 1, False)  # type: ignore[attr-defined]
        except ValueError:
            raise Unfinished("a quote does not end", at) from None
        return Token("quoted", inner, at, end)
    end = text.find(quote, at + 1)
    if end < 0:
        raise Unfinished("a quote does not end", at)
    return Token("quoted", text[at + 1 : end], at, end + 1)


def _json(text: str, at: int) -> Token:
    try:
        _, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        problem = error.msg if isinstance(error, json.JSONDecodeError) else "a number or depth too large"
        raise Unfinished(f"is not JSON: {problem}", getattr(error, "pos", at)) from None
    return Token("json", text[at:end], at, end)


def _names_key(word: str) -> bool:
    name = word.lstrip("-")
    return find_key(name) is not None or name.lower() in SHORTHANDS
