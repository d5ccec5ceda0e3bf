"""A person's last sizings, each one press away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot import texts
from bot.blocks import presses
from bot.blocks.elements import Block, button, header, section
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.notice import notice_message
from bot.blocks.text import bold, clip, escape

Summary = Mapping[str, Any]


def history_message(summaries: Sequence[Summary], links: Links) -> Message:
    if not summaries:
        return notice_message(texts.NO_SIZINGS_YET)
    spoken = [f"{summary['id']}: {summary['model']['id']}, {summary['verdict']['text']}" for summary in summaries]
    return Message(
        text=escape("\n".join([texts.HISTORY_TITLE, *spoken])),
        parts=(header(texts.HISTORY_TITLE), *(summary_block(summary, links) for summary in summaries)),
    )


def summary_block(summary: Summary, links: Links) -> Block:
    verdict = summary["verdict"]
    mark = texts.MARKS.get(verdict["code"], "")
    day = str(summary["recorded_at"])[:16].replace("T", " ")
    said = f"{mark} {bold(str(summary['model']['id']))} {escape(clip(verdict['text'].partition('; ')[0], 300))}"
    return section(
        f"{said}\n{day} UTC · {links.sizing(summary['id'])}",
        button(texts.BUTTON_SHOW, presses.SHOW, value=summary["id"]),
    )
