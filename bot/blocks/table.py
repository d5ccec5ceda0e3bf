"""A table as Slack's `table` block, and the same rows as fixed-width text where that block is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot import limits
from bot.blocks.elements import Block, preformatted
from bot.blocks.text import clip

EMPTY_CELL = "–"
_CELL_CHARS = 90
_NUMBER_UNIT = re.compile(r"(\d) ([kKMG]i?B\b)")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain text under a row of headings. `numeric` columns are set to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()

    def block(self) -> Block:
        rows = [_row(self.headings, strong=True)]
        rows += [_row(row) for row in self._shown()]
        return {"type": "table", "column_settings": self._column_settings(), "rows": rows}

    def text_block(self) -> Block:
        return preformatted(self.text())

    def text(self) -> str:
        """Columns padded to their widest cell."""
        lines = [self.headings, *self._shown()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.headings))]
        return "\n".join(self._line(line, widths).rstrip() for line in lines)

    def _line(self, line: Sequence[str], widths: Sequence[int]) -> str:
        cells = zip(line, widths, strict=True)
        return "  ".join(
            cell.rjust(width) if column in self.numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(cells)
        )

    def _shown(self) -> tuple[tuple[str, ...], ...]:
        """As many rows as rows and characters allow; the last one shown says how many are left."""
        room = limits.TABLE_CELLS_CHARS - sum(len(cell) for cell in self.headings) - 100
        kept: list[tuple[str, ...]] = []
        for row in self.rows[: limits.TABLE_ROWS - 1]:
            cells = tuple(clip(cell, _CELL_CHARS) or EMPTY_CELL for cell in row)
            room -= sum(len(cell) for cell in cells)
            if room < 0:
                break
            kept.append(cells)
        left = len(self.rows) - len(kept)
        if left and kept:
            kept[-1] = (f"… {left + 1} more", *[EMPTY_CELL] * (len(self.headings) - 1))
        return tuple(kept)

    def _column_settings(self) -> list[dict[str, object]]:
        return [
            {"align": "right" if column in self.numeric else "left", "is_wrapped": True}
            for column in range(len(self.headings))
        ]


def together(cell: str) -> str:
    """Number and unit on one line, however narrow the column is on a phone."""
    return _NUMBER_UNIT.sub("\\1\N{NO-BREAK SPACE}\\2", cell)


def _row(cells: Sequence[str], *, strong: bool = False) -> list[dict[str, object]]:
    if not strong:
        return [{"type": "raw_text", "text": together(cell)} for cell in cells]
    return [
        {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": cell, "style": {"bold": True}}]}
            ],
        }
        for cell in cells
    ]
