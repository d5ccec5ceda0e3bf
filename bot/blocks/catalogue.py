"""The models and GPUs that are known, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.elements import context, header
from bot.blocks.message import Message
from bot.blocks.notice import notice_message
from bot.blocks.table import Table
from bot.blocks.text import code, escape

Item = Mapping[str, Any]

ROWS_SHOWN = 40
"""The messages are given one more, so that they know whether more match."""


def models_message(items: Sequence[Item], words: str) -> Message:
    rows = [
        (
            str(item["id"]),
            quantities.parameters(item["parameters"]) if item.get("parameters") else texts.NOT_PER_MODEL,
            quantities.count(item["max_positions"]) if item.get("max_positions") else texts.NOT_PER_MODEL,
            ", ".join(item.get("bare_sizes") or []) or ("" if item.get("supported", True) else texts.TOTALS_ONLY),
        )
        for item in items
    ]
    table = Table(headings=texts.MODELS_HEADINGS, rows=tuple(rows), numeric=frozenset({1, 2}))
    return _listing(texts.MODELS_TITLE, table, words, texts.MODELS_FOOT)


def gpus_message(items: Sequence[Item], words: str) -> Message:
    rows = [
        (
            str(item["id"]),
            memory_words(item),
            str(item.get("architecture") or texts.NOT_PER_MODEL),
            str(item.get("gpus_per_node") or texts.NOT_PER_MODEL),
            f"${item['price_per_hour']['usd']}" if item.get("price_per_hour") else texts.NOT_PER_MODEL,
        )
        for item in items
    ]
    table = Table(headings=texts.GPUS_HEADINGS, rows=tuple(rows), numeric=frozenset({1, 3, 4}))
    return _listing(texts.GPUS_TITLE, table, words, texts.GPUS_FOOT)


def memory_words(item: Item) -> str:
    """What the driver presents; where nobody has said that, what the label says."""
    if item.get("memory_bytes"):
        return quantities.both(item["memory_bytes"])
    return texts.BY_LABEL.format(label=item["label_gb"]) if item.get("label_gb") else texts.NOT_PER_MODEL


def _listing(title: str, table: Table, words: str, foot: str) -> Message:
    if not table.rows:
        return notice_message(texts.NOTHING_FOUND.format(words=code(words)))
    more = texts.MORE_ROWS.format(count=ROWS_SHOWN) if len(table.rows) > ROWS_SHOWN else ""
    shown = replace(table, rows=table.rows[:ROWS_SHOWN])
    spoken = "\n".join(" · ".join(cell for cell in row if cell) for row in shown.rows)
    return Message(
        text=escape(f"{title}\n{spoken}"),
        parts=(header(title), shown, context(f"{more} {foot}".strip())),
    )
