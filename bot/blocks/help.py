"""The help, short enough to be read."""

from __future__ import annotations

from bot import texts
from bot.blocks.elements import context, header, section
from bot.blocks.message import Message


def help_message() -> Message:
    examples = "\n".join(f"`{texts.COMMAND} {words}`\n{meaning}" for words, meaning in texts.HELP_EXAMPLES)
    commands = "\n".join(f"`{texts.COMMAND} {words}` {meaning}" for words, meaning in texts.HELP_COMMANDS)
    words = "\n".join(f"`{word}` {meaning}" for word, meaning in texts.HELP_WORDS)
    return Message(
        text=f"{texts.HELP_TITLE} {texts.HELP_INTRO}\n{examples}\n{words}\n{commands}\n{texts.HELP_FOOT}",
        parts=(
            header(texts.HELP_TITLE),
            section(texts.HELP_INTRO),
            section(f"{texts.HELP_TRY_TITLE}\n{examples}"),
            section(f"{texts.HELP_WORDS_TITLE}\n{words}"),
            section(f"{texts.HELP_COMMANDS_TITLE}\n{commands}"),
            context(texts.HELP_FOOT),
        ),
    )
