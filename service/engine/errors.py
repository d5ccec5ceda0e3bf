"""What the engine, the grammar and the catalogue raise when a question cannot be answered as it was asked.

TrainmemError
└── InvalidInput          one or more FieldError, all of them at once
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class FieldError(NamedTuple):
    """One thing wrong with one key of a request.

    `pointer` is a JSON pointer ("/tp"), `given` what was read, `allowed` what would have been right, in words.
    `position` is where in a command text it was read: a 0-based offset into the normalised text.
    """

    pointer: str
    detail: str
    given: str | None = None
    allowed: str | None = None
    suggestions: tuple[str, ...] = ()
    position: int | None = None


class TrainmemError(Exception):
    """The root of our own exceptions."""


class InvalidInput(TrainmemError):
    """A request that is understood as text but cannot be answered; carries every error that was found."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        if not self.errors:
            raise ValueError("InvalidInput needs at least one FieldError")
        super().__init__("; ".join(error.detail for error in self.errors))


def nearest(word: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The spellings in `known` closest to `word`, best first; case does not count."""
    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    found: Sequence[str] = difflib.get_close_matches(word.lower()[:80], by_lower, n=most, cutoff=0.6)
    return tuple(by_lower[name] for name in found)
