"""One term of a sizing, part by part: what it is, why it exists, and which levers touch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks import presses, quantities
from bot.blocks.elements import actions, context, header, section
from bot.blocks.links import Links
from bot.blocks.message import Message, Part
from bot.blocks.table import Table
from bot.blocks.terms import name
from bot.blocks.text import code, escape, plain

LEVERS_SHOWN = 4
STATE_TERMS = ("weights", "gradients", "master_weights", "optimizer_moments")


def explanation_message(sizing: Mapping[str, Any], term_key: str, links: Links) -> Message:
    per_gpu = sizing["per_gpu"]
    term = next(item for item in per_gpu["terms"] if item["term"] == term_key)
    total = sum(item["bytes"] for item in per_gpu["terms"])
    title = texts.EXPLAIN_TITLE.format(
        term=name(term_key).capitalize(),
        size=quantities.both(term["bytes"]),
        share=quantities.share(term["bytes"], total),
    )
    because = texts.EXPLAIN_BECAUSE.format(because=escape(term["because"]), scales_with=escape(term["scales_with"]))
    lines = [because, levers_line(sizing, term_key)]
    parts: list[Part] = [header(title), *(section(line) for line in lines if line)]
    table = parts_table(term)
    if table.rows:
        parts.insert(2, table)
    menu = presses.terms_menu(sizing, term_key)
    parts.append(context(texts.EXPLAIN_OF.format(sizing=links.sizing(sizing["id"]))))
    if menu:
        parts.append(actions([menu], presses.block_id(sizing["id"], "terms")))
    spoken = [title, *(plain(line) for line in lines if line)]
    return Message(text=escape("\n".join(spoken)), parts=tuple(parts))


def parts_table(term: Mapping[str, Any]) -> Table:
    """Largest first."""
    found = sorted(term.get("parts") or [], key=lambda part: -part["bytes"])
    rows = [
        (
            str(part["name"]),
            quantities.both(part["bytes"]),
            quantities.share(part["bytes"], term["bytes"]),
            str(part["formula"]),
        )
        for part in found
    ]
    return Table(headings=texts.PARTS_HEADINGS, rows=tuple(rows), numeric=frozenset({1, 2}))


def lever_words(lever: Mapping[str, Any]) -> str:
    saves = quantities.gib(lever["saves_bytes_per_gpu"])
    return texts.LEVER_EXPLAINED.format(lever=code(lever["lever"]), saves=saves)


def levers_line(sizing: Mapping[str, Any], term_key: str) -> str:
    touching = {term_key, "state"} if term_key in STATE_TERMS else {term_key}
    found = [lever for lever in sizing.get("levers") or [] if lever["touches"] in touching][:LEVERS_SHOWN]
    words = [lever_words(lever) for lever in found]
    return texts.EXPLAIN_LEVERS.format(levers=", ".join(words)) if words else ""
