"""A pie of what fills a GPU at the peak, for workspaces whose Slack draws charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot import limits, texts
from bot.blocks.elements import Block
from bot.blocks.quantities import GIB
from bot.blocks.text import clip


@dataclass(frozen=True, slots=True)
class Chart:
    """Labels and sizes in bytes; what weighs nothing has no segment."""

    title: str
    segments: tuple[tuple[str, int], ...]

    def block(self) -> Block:
        points = [
            {"label": clip(label, limits.CHART_LABEL_CHARS), "value": round(size_bytes / GIB, 2)}
            for label, size_bytes in self.segments
            if size_bytes >= GIB // 100
        ]
        return {
            "type": "data_visualization",
            "title": clip(self.title, limits.CHART_TITLE_CHARS),
            "chart": {"type": "pie", "segments": points[: limits.CHART_SEGMENTS]},
        }


def per_gpu_chart(sizing: Mapping[str, Any]) -> Chart | None:
    """Terms of the fullest GPU, optimizer state and the small ones together, and what is left of usable memory.

    None where a pie would lie: a run that does not fit has no whole to be parts of.
    """
    per_gpu = sizing["per_gpu"]
    if per_gpu["headroom_bytes"] < 0:
        return None
    sizes = {term["term"]: term["bytes"] for term in per_gpu["terms"]}
    segments = tuple(
        (label, sum(sizes.get(term, 0) for term in terms)) for label, terms in texts.CHART_SEGMENTS.items()
    )
    chart = Chart(texts.CHART_TITLE, (*segments, (texts.CHART_FREE, per_gpu["headroom_bytes"])))
    return chart if any(size >= GIB // 100 for _, size in chart.segments) else None
