"""One GPU's memory as a bar: what fills it, where the usable part ends, how large the card is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate, groupby
from typing import Any

from rich.text import Text

#: Colour of each term, alike in the bar and in the table.
TERM_STYLES: Mapping[str, str] = {
    "weights": "blue",
    "gradients": "cyan",
    "master_weights": "magenta",
    "optimizer_moments": "yellow",
    "activations": "green",
    "working": "red",
    "runtime": "bright_black",
}


def memory_bar(per_gpu: Mapping[str, Any], memory_bytes: int, *, width: int) -> Text:
    """The terms of the fullest GPU to scale, a │ where its usable memory ends, and ░ for what is free."""
    sizes = [term["bytes"] for term in per_gpu["terms"]]
    whole = max(memory_bytes, sum(sizes))
    ends = [round(end / whole * width) for end in accumulate(sizes)]
    limit = min(round(per_gpu["usable_bytes"] / whole * width), width - 1)
    bar = Text()
    for (sign, style), run in groupby(_cell(column, limit, ends) for column in range(width)):
        bar.append(sign * len(list(run)), style)
    return bar


def _cell(column: int, limit: int, ends: list[int]) -> tuple[str, str]:
    """What stands in a column of the bar, and its style."""
    if column == limit:
        return "│", "bold"
    index = bisect_right(ends, column)
    return ("█", list(TERM_STYLES.values())[index]) if index < len(ends) else ("░", "bright_black")
