"""The floor in one line: what is left per GPU however many GPUs share the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.terms import listed
from bot.blocks.text import escape


def floor_words(sizing: Mapping[str, Any]) -> str:
    floor = sizing.get("sharding_floor")
    if not floor:
        return ""
    words = texts.FLOOR.format(
        floor=quantities.both(floor["bytes_per_gpu"]),
        terms=escape(listed(floor.get("terms") or [])),
        fits=texts.FLOOR_FITS if floor["fits"] else texts.FLOOR_DOES_NOT_FIT,
    )
    helps_until = floor.get("helps_until_gpus") or 1
    helps = texts.FLOOR_HELPS_UNTIL.format(gpus=quantities.count(helps_until)) if helps_until > 1 else ""
    then = texts.FLOOR_THEN.format(then=escape(str(floor["then"]))) if floor.get("then") else ""
    return " ".join(part for part in (words, helps, then) if part)
