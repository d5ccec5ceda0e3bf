"""From the tokens of a command to the keys it sets, with every error and the place of each key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from service.engine.errors import FieldError, nearest
from service.engine.units import BINARY_SUFFIXES, DECIMAL_SUFFIXES
from service.requests.bare_words import CHOICES_ALONE, Reading, assigned, gpu_reading, recognise
from service.requests.gpu_words import SIZE, is_bare, looks_like_device, read_gpu
from service.requests.keys import KEYS, KNOWN_KEYS, MOST_ERRORS, find_key, nearest_keys
from service.requests.objects import shown
from service.requests.shorthands import SHORTHANDS, contradictions, key_named
from service.requests.text_values import FALSE_WORDS, TRUE_WORDS, Misread, read_items, read_json
from service.requests.tokens import Token
from service.requests.vocabulary import Key

#: From and up to which character of the normalised text a key's value stands.
Place = tuple[int, int]

_FLAG = re.compile(r"-{1,2}[a-z][\w-]*", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_LENGTH = re.compile(r"\d{1,40}k?", re.IGNORECASE | re.ASCII)
_SIZE_UNIT = re.compile(r"b|bn|billion|m|million|t|trillion", re.IGNORECASE)


class Reader:
    """Reads a line of tokens once, from left to right."""

    def __init__(self, text: str, line: Sequence[Token]) -> None:
        self.text = text
        self.line = line
        self.request: dict[str, Any] = {}
        self.places: dict[str, Place] = {}
        self.errors: list[FieldError] = []

    def read(self) -> None:
        """Fill `request`, `places` and `errors`; stop early only when there are more errors than anybody reads."""
        at = 0
        while at < len(self.line) and len(self.errors) < MOST_ERRORS:
            at = self._step(at)

    def _step(self, at: int) -> int:
        token = self.line[at]
        if token.kind == "comma":
            return at + 1
        if token.kind == "equals":
            self._refuse(token, "has no key before it", allowed="key=value")
            return at + 1
        if self._kind(at + 1) == "equals" or _is_flag(token):
            return self._assignment(at)
        if token.kind != "word":
            return self._take(self._named_whole("model", at), at)
        reading = recognise(self.line, at)
        return self._take(reading, at, word=token.text) if reading else self._bare(at)

    # --- key=value and flags ---

    def _assignment(self, at: int) -> int:
        token = self.line[at]
        word = token.text.lstrip("-") if _is_flag(token) else token.text
        value_at = at + 1
        while self._kind(value_at) == "equals":
            value_at += 1
        key = find_key(word)
        if key is None and word.lower() not in SHORTHANDS:
            self._refuse(
                token, "is not a key", f"/{word[:80]}", allowed=KNOWN_KEYS, suggestions=nearest_keys(word, text=True)
            )
            return value_at + (self._is_value(value_at) and value_at > at + 1)
        if value_at == at + 1 and (key is None or key.kind == "boolean"):
            return self._bare_flag(word, key, at)
        if not self._is_value(value_at, key):
            return self._take(assigned(word, None, value_at), at, word=word)
        return self._take(self._value(word, key, value_at), value_at, word=word)

    def _bare_flag(self, word: str, key: Key | None, at: int) -> int:
        """A flag that may stand alone: `--compile`, `--compile false`, `--lora`, `--zero 3`."""
        following = self.line[at + 1].text.lower() if is_bare(self.line, at + 1) else ""
        takes = following in TRUE_WORDS | FALSE_WORDS if key else bool(_NUMBER.fullmatch(following))
        return self._take(assigned(word, following if takes else None, at + 1 + takes), at, word=word)

    def _value(self, word: str, key: Key | None, at: int) -> Reading:
        token = self.line[at]
        if key is None:
            return assigned(word, token.text, at + 1)
        if token.kind == "json" or (token.kind == "quoted" and key.kind == "model"):
            return self._named_whole(key.name, at)
        if key.kind == "model":
            name, next_at = self._model_words(at)
            return Reading([(key, name)], next_at)
        if key.kind == "gpu":
            return self._gpus(at)
        if key.is_list:
            return self._items(key, at)
        suffixes = {"binary": BINARY_SUFFIXES, "decimal": DECIMAL_SUFFIXES, "none": {"%": 1}}[key.suffixes]
        if _NUMBER.fullmatch(token.text) and is_bare(self.line, at + 1) and self.line[at + 1].text.lower() in suffixes:
            return assigned(word, token.text + self.line[at + 1].text, at + 2)
        if key.kind == "integer" and self._continues_number(at):
            return assigned(word, f"{token.text},{self.line[at + 2].text}", at + 3)
        return assigned(word, token.text, at + 1)

    def _named_whole(self, name: str, at: int) -> Reading:
        """JSON, or a quoted name, as the whole value of a key."""
        token = self.line[at]
        try:
            return Reading([(KEYS[name], token.text if token.kind == "quoted" else read_json(token.text))], at + 1)
        except Misread as misread:
            return Reading([], at + 1, misread)

    def _gpus(self, at: int) -> Reading:
        """One GPU, or several separated by commas; each may have its form and size behind it."""
        names: list[str] = []
        counts: set[str] = set()
        while True:
            phrase = read_gpu(self.line, at, expected=True)
            if phrase is None:
                break
            names.extend([phrase.name] if phrase.name else [])
            counts.update([phrase.count] if phrase.count else [])
            at = phrase.next_at
            if self._kind(at) != "comma" or not self._is_value(at + 1) or SIZE.fullmatch(self.line[at + 1].text):
                break
            at += 1
        if len(counts) > 1:
            return Reading([], at, Misread("has different counts: a comparison is for one number of GPUs"))
        return gpu_reading(names, next(iter(counts), None), at)

    def _items(self, key: Key, at: int) -> Reading:
        items = [self.line[at].text]
        at += 1
        while self._kind(at) == "comma" and self._is_value(at + 1, key) and self._may_be_item(key, at + 1):
            items.append(self.line[at + 1].text)
            at += 2
        try:
            return Reading([(key, read_items(key, items))], at)
        except Misread as misread:
            return Reading([], at, misread)

    def _may_be_item(self, key: Key, at: int) -> bool:
        """A word directly behind a comma is an item; behind a comma and a space only if it looks like one."""
        token = self.line[at]
        if token.start == self.line[at - 1].end:
            return True
        return bool(_NUMBER.fullmatch(token.text)) if key.kind == "integers" else token.text.lower() in key.choices

    def _continues_number(self, at: int) -> bool:
        """Whether "8,192" was written, a number with thousands set apart."""
        return (
            self._kind(at + 1) == "comma"
            and is_bare(self.line, at + 2)
            and self.line[at].end == self.line[at + 1].start == self.line[at + 2].start - 1
            and re.fullmatch(r"\d{3}", self.line[at + 2].text) is not None
        )

    # --- bare words ---

    def _bare(self, at: int) -> int:
        token = self.line[at]
        if "model" in self.request:
            near = _nearest_words(token.text)
            model = shown(self.request["model"])
            self._refuse(token, f"is not understood; the model is {model}", allowed="key=value", suggestions=near)
            return at + 1
        name, next_at = self._model_words(at)
        if _LENGTH.fullmatch(token.text) and not SIZE.fullmatch(name):
            near = (f"{token.text}B", f"seq={token.text}")
            self._refuse(token, "stands alone", allowed="key=value", suggestions=near)
            return at + 1
        return self._take(Reading([(KEYS["model"], name)], next_at), at)

    def _model_words(self, at: int) -> tuple[str, int]:
        """The model's name from token `at` on, and the token behind it. A size ("70B", "70 billion") is complete."""
        first, following = self.line[at].text, at + 1
        if _NUMBER.fullmatch(first) and is_bare(self.line, following):
            unit = self.line[following].text
            if _SIZE_UNIT.fullmatch(unit):
                return first + unit[0].upper(), following + 1
        words = [first]
        while (
            not SIZE.fullmatch(first)
            and is_bare(self.line, following)
            and ":" not in (word := self.line[following].text)
            and not _is_flag(self.line[following])
            and recognise(self.line, following) is None
        ):
            words.append(word)
            following += 1
        return " ".join(words), following

    # --- keeping what was read ---

    def _take(self, reading: Reading, at: int, *, word: str = "") -> int:
        """Keep what a reading sets. `at` is the token where the value stands, `word` what it was set with."""
        start = self.line[min(at, len(self.line) - 1)]
        last = self.line[reading.next_at - 1]
        if reading.misread is not None:
            self._misread(reading.misread, word, start, last)
        for error in contradictions(self.request, reading.chosen):
            self.errors.append(placed(error, start.start))
        for key, value in reading.chosen:
            self.request.setdefault(key.name, value)
            self.places.setdefault(key.name, (start.start, last.end))
        return reading.next_at

    def _misread(self, misread: Misread, word: str, start: Token, last: Token) -> None:
        key = key_named(word)
        pointer = key.pointer if key else "/command"
        given = shown(self.text[start.start : max(start.end, last.end)])
        error = FieldError(
            pointer, f"{word or start.text} {misread}", given, key.allowed if key else None, misread.suggestions
        )
        self.errors.append(placed(error, start.start))

    def _refuse(
        self,
        token: Token,
        problem: str,
        pointer: str = "/command",
        *,
        allowed: str | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        error = FieldError(pointer, f"{shown(token.text)} {problem}", shown(token.text), allowed, suggestions)
        self.errors.append(placed(error, token.start))

    def _text(self, at: int) -> str:
        return self.line[at].text if at < len(self.line) else ""

    def _kind(self, at: int) -> str | None:
        return self.line[at].kind if at < len(self.line) else None

    def _is_value(self, at: int, key: Key | None = None) -> bool:
        """Whether the token can be a value, not the next key or flag ("seq= mb=2" has none for seq)."""
        if self._kind(at) in (None, "equals", "comma") or self._kind(at + 1) == "equals":
            return False
        return not _is_flag(self.line[at]) or (key is not None and self.line[at].text[1:] in key.choices)


def _is_flag(token: Token) -> bool:
    return token.kind == "word" and _FLAG.fullmatch(token.text) is not None


def placed(error: FieldError, position: int) -> FieldError:
    """The error with the place of its word, which the text tells too: not every reader shows `position`."""
    return error._replace(detail=f"character {position}: {error.detail}", position=position)


def _nearest_words(word: str) -> tuple[str, ...]:
    """What a word that is left over may have meant."""
    if looks_like_device(f"rtx{word}"):
        return (f"gpu={word}",)
    if _LENGTH.fullmatch(word):
        return (f"seq={word}",)
    return nearest_keys(word.partition(":")[0], text=True) or nearest(word, CHOICES_ALONE)
