"""What to do about it: the recommended count and why, or the nearest that fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.layout import change_words, layout_words
from bot.blocks.text import code, escape

REASONS_SHOWN = 3


def advice_lines(sizing: Mapping[str, Any]) -> list[str]:
    lines = [_recommended(sizing) if sizing.get("recommendation") else _asked(sizing), _nearest_fit(sizing)]
    if sizing["verdict"]["code"] == "tight":
        lines.append(texts.TIGHT)
    host = sizing["per_gpu"].get("host_bytes")
    if host:
        lines.append(texts.HOST_MEMORY.format(host=quantities.both(host)))
    return [line for line in lines if line]


def _recommended(sizing: Mapping[str, Any]) -> str:
    recommendation = sizing["recommendation"]
    words = texts.RECOMMENDED.format(gpus=quantities.count(recommendation["gpus"]), gpu=escape(sizing["gpu"]["name"]))
    return " ".join([words, *(escape(str(reason)) for reason in (recommendation.get("why") or [])[:REASONS_SHOWN])])


def _asked(sizing: Mapping[str, Any]) -> str:
    per_gpu = sizing["per_gpu"]
    words = texts.ASKED_FITS if per_gpu["fits"] else texts.ASKED_DOES_NOT_FIT
    return words.format(gpus=quantities.count(per_gpu["gpus"]), gpu=escape(sizing["gpu"]["name"]))


def _nearest_fit(sizing: Mapping[str, Any]) -> str:
    nearest = sizing.get("nearest_fit")
    if not nearest:
        return ""
    return texts.NEAREST_FIT.format(
        change=code(change_words(nearest.get("change") or {})),
        gpus=quantities.count(nearest["gpus"]),
        gpu=escape(sizing["gpu"]["name"]),
        layout=escape(layout_words(nearest["layout"])),
        peak=quantities.both(nearest["peak_bytes"]),
    )
