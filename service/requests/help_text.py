"""The vocabulary as text for people: help of the command line, and the tables of docs/commands.md."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from service.requests.keys import GROUPS
from service.requests.vocabulary import Key

INDENT = 26


def key_table(*, width: int) -> str:
    """Every key with its short words, meaning, allowed values and default, for a terminal `width` columns wide."""
    lines = ["Keys, with what is allowed and [the default]:", ""]
    for heading, keys in GROUPS.items():
        lines.append(f"{heading}:")
        for key in keys:
            lines.extend(_terminal_row(key, width))
        lines.append("")
    return "\n".join(lines)


def _terminal_row(key: Key, width: int) -> Iterator[str]:
    names = ", ".join((key.name, *key.words))
    indent = " " * INDENT
    lines = [
        line
        for part in (key.meaning, f"{key.allowed} [{key.default}]")
        for line in textwrap.wrap(part, max(width, 60) - INDENT, break_on_hyphens=False)
    ]
    if len(names) > INDENT - 4:
        yield f"  {names}"
    else:
        yield f"  {names:<{INDENT - 2}}{lines.pop(0)}"
    yield from (indent + line for line in lines)


def key_markdown() -> str:
    """Every key as Markdown tables, one for each group."""
    return "\n\n".join(f"### {heading}\n\n{_markdown_table(keys)}" for heading, keys in GROUPS.items())


def _markdown_table(keys: tuple[Key, ...]) -> str:
    rows = ["| key | short words | meaning | allowed | default | example |", "|---|---|---|---|---|---|"]
    for key in keys:
        words = ", ".join(f"`{word}`" for word in key.words)
        example = f"`{key.example}`" if key.example else ""
        cells = (f"`{key.name}`", words, key.meaning, key.allowed, key.default, example)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
