"""Bars drawn with characters: right at a glance in a field, and the picture in the text that has no blocks."""

from __future__ import annotations

FULL, EMPTY, OVER = "█", "░", "▓"


def gauge(used_bytes: int, usable_bytes: int, width: int = 12) -> str:
    """How much of what is usable is taken; what is there shows at least one cell, an overflow sticks out behind `|`."""
    if usable_bytes <= 0:
        return EMPTY * width
    cells = round(width * used_bytes / usable_bytes)
    if used_bytes > usable_bytes:
        return FULL * width + "|" + OVER * min(max(cells - width, 1), width)
    cells = min(max(cells, 1 if used_bytes > 0 else 0), width)
    return FULL * cells + EMPTY * (width - cells)
