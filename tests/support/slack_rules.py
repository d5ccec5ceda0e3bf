"""Rules that a part of a Block Kit payload keeps or breaks; a broken one says so as Slack does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

Rule = Callable[[Any, str], Iterator[str]]


def fault(words: str, at: str) -> str:
    return f"[ERROR] {words} [json-pointer:{at}]"


def shape(item: Any, at: str, *, required: dict[str, Rule], optional: dict[str, Rule]) -> Iterator[str]:
    if not isinstance(item, dict):
        yield fault("must be an object", at)
        return
    for name in required:
        if name not in item:
            yield fault(f"missing required field: {name}", at)
    for name, value in item.items():
        rule = required.get(name) or optional.get(name)
        if name != "type" and rule is None:
            yield fault(f"invalid additional property: {name}", at)
        elif rule is not None:
            yield from rule(value, f"{at}/{name}")


def anything(value: Any, at: str) -> Iterator[str]:
    yield from ()


def boolean(value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, bool):
        yield fault("must be a boolean", at)


def finite(value: Any, at: str) -> Iterator[str]:
    if not isinstance(value, int | float) or not math.isfinite(value):
        yield fault("must be a finite number", at)


def chars(most: int, least: int = 1) -> Rule:
    def rule(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield fault("must be a string", at)
        elif len(value) > most:
            yield fault(f"must be less than {most + 1} characters", at)
        elif len(value) < least:
            yield fault(f"must be more than {least - 1} characters", at)

    return rule


def whole_number(least: int, most: int) -> Rule:
    def rule(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, int) or not least <= value <= most:
            yield fault(f"must be a whole number from {least} to {most}", at)

    return rule


def choice(*allowed: str) -> Rule:
    def rule(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, str) or value not in allowed:
            yield fault(f"must be one of {', '.join(allowed)}", at)

    return rule


def plain(most: int) -> Rule:
    return text_object(most, "plain_text")


def text_object(most: int, *kinds: str) -> Rule:
    def rule(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, dict) or str(value.get("type")) not in kinds:
            yield fault(f"must be a {' or '.join(kinds)} object", at)
            return
        yield from chars(most)(value.get("text"), f"{at}/text")
        allowed = {"type", "text", "emoji"} if value["type"] == "plain_text" else {"type", "text", "verbatim"}
        yield from (fault(f"invalid additional property: {name}", at) for name in value.keys() - allowed)

    return rule


def items(rule: Rule, least: int, most: int) -> Rule:
    def check(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield fault("must be an array", at)
            return
        if len(value) > most:
            yield fault(f"no more than {most} items allowed", at)
        if len(value) < least:
            yield fault(f"no fewer than {least} items allowed", at)
        for number, item in enumerate(value):
            yield from rule(item, f"{at}/{number}")

    return check


def one_of(kinds: dict[str, tuple[dict[str, Rule], dict[str, Rule]]]) -> Rule:
    def rule(value: Any, at: str) -> Iterator[str]:
        if not isinstance(value, dict) or str(value.get("type")) not in kinds:
            yield fault(f"unsupported element: {value.get('type') if isinstance(value, dict) else value!r}", at)
            return
        required, optional = kinds[value["type"]]
        yield from shape(value, at, required=required, optional=optional)

    return rule
