"""A sizing as JSON text. The engine's answer is written once; recording puts members in front of it, byte for byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from service.audit.service import Receipt
from service.requests.request import SizingRequest

#: Above this JSON readers disagree about integers, and RFC 8785 does not write them.
_LARGEST_EXACT_INTEGER = 2**53


def dumps(value: Any) -> str:
    """Compact JSON in the order of the members. Raises ValueError for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def answer_text(answer: Mapping[str, Any]) -> str:
    """The engine's answer without the question: what is stored, and what its digest in the audit covers."""
    return dumps({name: value for name, value in answer.items() if name != "request"})


def digest(text: str) -> str:
    """SHA-256 of a text's UTF-8, lower-case hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def question(request: SizingRequest) -> dict[str, Any]:
    """The question as flat JSON: as it was sent, or for a command what it meant."""
    flat: dict[str, Any] = plain(request.as_asked if request.command is None else request.given())
    return flat


def recorded(*, id: str, recorded_at: str, receipt: Receipt, asked: Mapping[str, Any], answer: str) -> str:
    """The whole sizing: what recording adds, then the stored answer."""
    added = {"id": id, "recorded_at": recorded_at, "audit": receipt._asdict(), "request": asked}
    return f"{dumps(added)[:-1]},{answer[1:]}"


def plain(value: Any) -> Any:
    """A checked request as JSON values that every reader reads alike.

    An integer beyond 2^53 (only a foreign config.json has such) stands as the double that most readers take it for.
    """
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_EXACT_INTEGER:
        return float(value)
    return value
