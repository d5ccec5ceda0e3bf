"""The same run on several GPUs; the one that comes first by the goal that was asked stands first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import limits, texts
from bot.blocks import presses, quantities
from bot.blocks.assumptions import run_words
from bot.blocks.elements import actions, context, header, option, section, static_select
from bot.blocks.layout import layout_words
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.sizing import provenance, sizing_message
from bot.blocks.table import Table
from bot.blocks.text import clip, escape, plain

Line = Mapping[str, Any]


def comparison_message(sizing: Mapping[str, Any], links: Links) -> Message:
    """The plain answer when there was only one GPU to compare."""
    lines = sorted(sizing.get("comparison") or [], key=lambda line: line["gpu"] != sizing["gpu"]["id"])
    if not lines:
        return sizing_message(sizing, links)
    fitting = [line for line in lines if line["fits"]]
    title = texts.COMPARED.format(gpu=sizing["gpu"]["name"]) if fitting else texts.COMPARED_NONE
    menu = static_select(
        presses.USE_GPU,
        texts.MENU_USE_GPU,
        [option(clip(line["gpu"], 75), line["gpu"]) for line in lines[: limits.SELECT_OPTIONS]],
    )
    return Message(
        text=escape("\n".join([title, plain(run_words(sizing)), *(spoken(line) for line in lines)])),
        parts=(
            header(title),
            section(run_words(sizing)),
            comparison_table(lines),
            context(provenance(sizing, links)),
            *([actions([menu], presses.block_id(sizing["id"], "gpus"))] if sizing.get("id") else []),
        ),
    )


def comparison_table(lines: list[Line]) -> Table:
    with_cost = any(line.get("cost") for line in lines)
    rows = [
        (
            f"{texts.FITS_MARKS[bool(line['fits'])]} {line['gpu']}",
            str(line["gpus"]),
            layout_words(line["layout"]),
            quantities.both(line["peak_bytes"]),
            room(line["headroom_bytes"]),
            *(
                [quantities.money(line["cost"]["usd"]) if line.get("cost") else texts.NOT_PER_MODEL]
                if with_cost
                else []
            ),
        )
        for line in lines
    ]
    headings = texts.COMPARISON_HEADINGS + ((texts.COMPARISON_COST,) if with_cost else ())
    return Table(headings=headings, rows=tuple(rows), numeric=frozenset({1, 3, 4, 5}))


def room(headroom_bytes: int) -> str:
    return quantities.gib(headroom_bytes) if headroom_bytes >= 0 else f"−{quantities.gib(-headroom_bytes)}"


def spoken(line: Line) -> str:
    return texts.COMPARISON_SPOKEN.format(
        gpu=line["gpu"],
        gpus=line["gpus"],
        layout=layout_words(line["layout"]),
        peak=quantities.gib(line["peak_bytes"]),
        fits=texts.VERDICT_WORDS["fits" if line["fits"] else "does_not_fit"],
    )
