"""A pasted link to a sizing, in five lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.blocks.assumptions import run_words
from bot.blocks.elements import Block, context, section
from bot.blocks.layout import layout_words
from bot.blocks.links import Links
from bot.blocks.sizing import headline, peak_words, provenance
from bot.blocks.text import escape


def unfurl_blocks(sizing: Mapping[str, Any], links: Links) -> list[Block]:
    title, _ = headline(sizing)
    lines = [
        f"*{escape(title.replace('*', ''))}*",
        run_words(sizing),
        escape(layout_words(sizing["per_gpu"]["layout"])),
        peak_words(sizing, with_gauge=False),
    ]
    return [section("\n".join(lines)), context(provenance(sizing, links))]
