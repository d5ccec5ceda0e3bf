"""Words of text that set keys: the keys themselves, and `lora=16`, `zero=3`, `fsdp`, `ddp`, which set others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from service.engine.errors import FieldError
from service.requests.keys import KEYS, find_key
from service.requests.objects import shown
from service.requests.text_values import Misread, read_text
from service.requests.vocabulary import Key, as_name

ZERO_STAGES = ("none", "optimizer", "gradients", "parameters")
#: What a word means: the keys it sets, with their JSON values, in order.
Assignments = list[tuple[Key, Any]]


class UnknownWord(KeyError):
    """A word that names no key and is no shorthand."""


def assignments(word: str, value: str | None) -> Assignments:
    """The keys that `word` or `word=value` sets, with their values as JSON. Raises UnknownWord and Misread."""
    name = as_name(word)
    if name in SHORTHANDS:
        return SHORTHANDS[name](value)
    key = find_key(name)
    if key is None:
        raise UnknownWord(word)
    if value is None or (value == "" and key.kind == "boolean"):
        if key.kind != "boolean":
            raise Misread("needs a value", key.example)
        return [(key, True)]
    return [(key, read_text(key, value))]


def contradictions(meant: Mapping[str, Any], chosen: Assignments) -> Iterator[FieldError]:
    """One error for every key that is chosen again with another value."""
    for key, value in chosen:
        before = meant.get(key.name, value)
        if before != value:
            both = f"{shown(before)} and {shown(value)}"
            yield FieldError(key.pointer, f"{key.name} is given twice: {both}", both, "one value")


def _adapters(method: str) -> Callable[[str | None], Assignments]:
    def read(value: str | None) -> Assignments:
        chosen: Assignments = [(KEYS["method"], method)]
        return [*chosen, (KEYS["lora_rank"], read_text(KEYS["lora_rank"], value))] if value else chosen

    return read


def _zero(value: str | None) -> Assignments:
    stages = {str(stage): name for stage, name in enumerate(ZERO_STAGES)}
    if value not in stages:
        raise Misread("is a stage from 0 to 3", "zero=1", "zero=2", "zero=3")
    return [(KEYS["shard"], stages[value])]


def _fsdp(value: str | None) -> Assignments:
    sharded: Assignments = [(KEYS["shard"], "parameters")]
    return [*sharded, (KEYS["fsdp_version"], read_text(KEYS["fsdp_version"], value))] if value else sharded


def _ddp(value: str | None) -> Assignments:
    if value:
        raise Misread("takes no value", "ddp", "dp=8")
    return [(KEYS["shard"], "none")]


SHORTHANDS: Mapping[str, Callable[[str | None], Assignments]] = {
    "lora": _adapters("lora"),
    "qlora": _adapters("qlora"),
    "zero": _zero,
    "fsdp": _fsdp,
    "ddp": _ddp,
}
#: Which key a shorthand is about, for errors.
_ABOUT = {"lora": "lora_rank", "qlora": "lora_rank", "zero": "shard", "fsdp": "fsdp_version", "ddp": "shard"}


def key_named(word: str) -> Key | None:
    """The key that a word sets or is about; None for a word that sets nothing."""
    return find_key(word) or KEYS.get(_ABOUT.get(as_name(word), ""))
