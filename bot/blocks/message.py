"""A message with everything that is needed to say it more plainly when Slack refuses the rich form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bot import limits
from bot.blocks.elements import Block
from bot.blocks.table import Table
from bot.blocks.text import clip

Part = Block | Table


@dataclass(frozen=True, slots=True)
class Message:
    """`text` says everything that matters without blocks: notifications and screen readers get it, and so does
    everybody when all blocks are refused. `metadata` lets somebody find the sizing without parsing text. What is
    `private` is for the asker only, even where the answer would have been for everybody.
    """

    text: str
    parts: tuple[Part, ...] = ()
    metadata: dict[str, Any] | None = field(default=None)
    private: bool = False

    def payloads(self) -> Iterator[dict[str, Any]]:
        """The same message in falling richness: blocks with a table, blocks with the table as text, text only."""
        has_table = any(isinstance(part, Table) for part in self.parts)
        if has_table:
            yield self._payload([part.block() if isinstance(part, Table) else part for part in self.parts])
        if self.parts:
            yield self._payload([part.text_block() if isinstance(part, Table) else part for part in self.parts])
        yield self._payload([])

    def payload(self) -> dict[str, Any]:
        """The richest form."""
        return next(self.payloads())

    def _payload(self, blocks: list[Block]) -> dict[str, Any]:
        payload: dict[str, Any] = {"text": clip(self.text, limits.MESSAGE_TEXT_CHARS)}
        if blocks:
            payload["blocks"] = blocks[: limits.BLOCKS_PER_MESSAGE]
        if self.metadata:
            payload["metadata"] = self.metadata
        return payload
