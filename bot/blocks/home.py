"""The Home tab: a way to start, what the person asked last, and how current the facts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot import limits, texts
from bot.blocks import presses
from bot.blocks.elements import Block, actions, button, context, divider, header, section
from bot.blocks.history import summary_block
from bot.blocks.links import Links


def home_view(summaries: Sequence[Mapping[str, Any]], links: Links, note: str = "") -> dict[str, Any]:
    """`note` stands in the place of the list when it could not be read."""
    blocks: list[Block] = [
        header(texts.HELP_TITLE),
        section(texts.HOME_INTRO),
        actions([button(texts.BUTTON_NEW, presses.NEW, style="primary")]),
        divider(),
        header(texts.HISTORY_TITLE),
        *(summary_block(summary, links) for summary in summaries),
    ]
    if not summaries:
        blocks.append(section(note or texts.NO_SIZINGS_YET))
    blocks.append(context(texts.HELP_FOOT))
    return {"type": "home", "blocks": blocks[: limits.BLOCKS_PER_HOME]}
