"""The rows behind a sizing: each tensor with its formula, sizes put in, bytes, why it exists and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from service.engine.units import format_binary
from service.terminal.bar import TERM_STYLES

INDENT = 4


def write_explanation(sizing: Mapping[str, Any], console: Console) -> None:
    """Write the rows of a sizing by term and layer kind, largest first, with the sums of both."""
    console.print(Text(sizing["verdict"]["text"], "bold"))
    rows = sizing["rows"]
    if not rows:
        console.print("\nNothing of that is alive on this GPU then.")
    for (term, moment), of_term in groupby(rows, key=lambda row: (row["term"], row["moment"])):
        listed = list(of_term)
        title = f"{term.replace('_', ' ')}: {_sum(listed)} at the moment {moment.replace('_', ' ')}"
        console.print()
        console.print(Text(title, TERM_STYLES[term]))
        for group, of_group in groupby(listed, key=lambda row: row["group"]):
            together = list(of_group)
            console.print(Text(f"  {group}: {_sum(together)}", "bold"))
            for row in together:
                _write_row(row, console)


def _write_row(row: Mapping[str, Any], console: Console) -> None:
    times = f" × {row['copies']:,}" if row["copies"] != 1 else ""
    line = Text.assemble((row["name"], "bold"), f"  {format_binary(row['total_bytes'])}")
    line.append(f"  {row['formula']} = {row['substitution']}{times}", "dim")
    console.print(Padding(line, (0, 0, 0, INDENT)))
    console.print(Padding(Text(f"{row['why']} ({row['source']})", "dim"), (0, 0, 0, INDENT + 2)))


def _sum(rows: list[Mapping[str, Any]]) -> str:
    return format_binary(sum(row["total_bytes"] for row in rows))
