"""Cursors of lists: opaque to callers, so that what a list is ordered by can change."""

from __future__ import annotations

import base64
import json
from typing import Any

from service.errors import FieldError, InvalidInput

_VERSION = 1


def encode(*position: str | int) -> str:
    """A cursor that continues after `position`."""
    text = json.dumps([_VERSION, *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def decode(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The position in `cursor`, whose parts have `kinds`. Raises InvalidInput for anything else."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        version, *position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if version != _VERSION or [type(part) for part in position] != list(kinds):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise unreadable(cursor) from None
    return tuple(position)


def unreadable(cursor: str) -> InvalidInput:
    """The error about a cursor that `encode` did not make."""
    allowed = "the `next` of the page before, with the same filters"
    return InvalidInput([FieldError("/cursor", "the cursor cannot be read", cursor[:100], allowed)])
