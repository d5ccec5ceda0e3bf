"""A sentence, where there is nothing to show."""

from __future__ import annotations

from bot.blocks.elements import section
from bot.blocks.message import Message
from bot.blocks.text import escape, plain


def notice_message(words: str) -> Message:
    return Message(text=escape(plain(words)), parts=(section(words),))
