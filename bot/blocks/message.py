"""A message with everything that is needed to say it more plainly when Slack refuses the rich form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bot import limits
from bot.blocks.chart import Chart
from bot.blocks.elements import Block
from bot.blocks.table import Table
from bot.blocks.text import clip

Part = Block | Table | Chart


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

    def payloads(self, *, charts: bool = True) -> Iterator[dict[str, Any]]:
        """The same message in falling richness: with charts, with tables, the tables as text, text only."""
        kinds = {type(part) for part in self.parts}
        if charts and Chart in kinds:
            yield self._payload([part if isinstance(part, dict) else part.block() for part in self.parts])
        plainer = [part for part in self.parts if not isinstance(part, Chart)]
        if Table in kinds:
            yield self._payload([part.block() if isinstance(part, Table) else part for part in plainer])
        if plainer:
            yield self._payload([part.text_block() if isinstance(part, Table) else part for part in plainer])
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
