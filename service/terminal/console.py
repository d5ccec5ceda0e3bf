"""The terminal, or the pipe, that output goes to."""

from __future__ import annotations

import os
from typing import IO, Any

from rich.console import Console

NARROWEST, WIDEST = 60, 100


def console(stream: IO[str]) -> Console:
    """A console on a stream, at most 100 columns wide. In a pipe it writes plain text; NO_COLOR and COLUMNS count."""
    found = Console(file=stream, highlight=False, emoji=False, markup=False)
    if not found.is_terminal:
        found.file = _WithoutTrailingSpaces(stream)  # type: ignore[assignment]
    columns = os.environ.get("COLUMNS", "")
    width = found.width if found.is_terminal or columns.isdigit() else WIDEST
    found.width = max(min(width, WIDEST), NARROWEST)
    return found


class _WithoutTrailingSpaces:
    """A stream without the spaces that fill tables up to their right edge."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write("\n".join(line.rstrip(" ") for line in text.split("\n")))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
