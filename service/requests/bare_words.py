"""Words that stand alone in a command and set keys: "compile", "lora", "tp4", "64xH100", "flash", "zero 3"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from service.requests.gpu_words import is_bare, looks_like_device, read_gpu
from service.requests.keys import KEYS, find_key
from service.requests.shorthands import SHORTHANDS, Assignments, assignments
from service.requests.text_values import FALSE_WORDS, TRUE_WORDS, Misread, read_text
from service.requests.tokens import Token
from service.requests.vocabulary import Key

#: Small words between the others; they carry nothing.
FILLERS = frozenset({"on", "with", "and", "using", "@"})
_GLUED = re.compile(
    r"(tp|pp|vpp|cp|ep|etp|dp|mb|mbs|bs|gbs|seq|ctx|zero|fsdp)-?(\d{1,12}[km]?)", re.IGNORECASE | re.ASCII
)
_NUMBER = re.compile(r"\d{1,12}", re.ASCII)


def _choices_alone() -> Mapping[str, Key]:
    """Choices that say by themselves which key they belong to, such as "flash" or "adamw"."""
    keys = [KEYS[name] for name in ("precision", "optimizer", "stack", "attention")]
    seen = Counter(choice for key in keys for choice in key.choices)
    return {choice: key for key in keys for choice in key.choices if seen[choice] == 1}


CHOICES_ALONE = _choices_alone()


class Reading(NamedTuple):
    """What a run of tokens sets, or why it cannot be read, and the token behind it."""

    chosen: Assignments
    next_at: int
    misread: Misread | None = None


def recognise(line: Sequence[Token], at: int) -> Reading | None:
    """What the bare words from token `at` on set; None when they may belong to the model's name."""
    if not is_bare(line, at):
        return None
    word = line[at].text.lower()
    if word in FILLERS:
        return Reading([], at + 1)
    return (
        _gpu(line, at)
        or _key_alone(line, at, word)
        or _shorthand(line, at, word)
        or _glued(at, word)
        or _choice(at, word)
    )


def assigned(word: str, value: str | None, next_at: int) -> Reading:
    """What `word=value` or a bare `word` sets."""
    try:
        return Reading(assignments(word, value), next_at)
    except Misread as misread:
        return Reading([], next_at, misread)


def gpu_reading(names: Sequence[str], count: str | None, next_at: int) -> Reading:
    """`gpu` for one name or a list of names, and `gpus` for a count."""
    chosen: Assignments = [(KEYS["gpu"], names[0] if len(names) == 1 else list(names))] if names else []
    if count is None:
        return Reading(chosen, next_at)
    try:
        return Reading([*chosen, (KEYS["gpus"], read_text(KEYS["gpus"], count))], next_at)
    except Misread as misread:
        return Reading(chosen, next_at, misread)


def _gpu(line: Sequence[Token], at: int) -> Reading | None:
    word = line[at].text
    if _NUMBER.fullmatch(word) and is_bare(line, at + 1) and looks_like_device(line[at + 1].text):
        device = line[at + 1].text
        problem = f"could be a count of {device} or the end of a name"
        return Reading([], at + 2, Misread(problem, f"{word}x{device}"))
    phrase = read_gpu(line, at, expected=False)
    if phrase is None:
        return None
    return gpu_reading([phrase.name] if phrase.name else [], phrase.count, phrase.next_at)


def _key_alone(line: Sequence[Token], at: int, word: str) -> Reading | None:
    """A key without "=": a boolean, or a key with its value behind it ("seq 8k")."""
    key = find_key(word)
    if key is None or key.kind in ("model", "gpu", "text"):
        return None
    following = line[at + 1].text.lower() if is_bare(line, at + 1) else None
    if key.kind == "boolean":
        given = following in TRUE_WORDS or following in FALSE_WORDS
        return assigned(word, following if given else None, at + 1 + given)
    if key.is_list or following is None:
        return assigned(word, None, at + 1)
    return assigned(word, following, at + 2)


def _shorthand(line: Sequence[Token], at: int, word: str) -> Reading | None:
    if word not in SHORTHANDS:
        return None
    if word == "zero" and is_bare(line, at + 1) and _NUMBER.fullmatch(line[at + 1].text):
        return assigned(word, line[at + 1].text, at + 2)
    return assigned(word, None, at + 1)


def _glued(at: int, word: str) -> Reading | None:
    match = _GLUED.fullmatch(word)
    return assigned(match[1], match[2], at + 1) if match else None


def _choice(at: int, word: str) -> Reading | None:
    key = CHOICES_ALONE.get(word.replace("_", "-"))
    return Reading([(key, word.replace("_", "-"))], at + 1) if key else None
