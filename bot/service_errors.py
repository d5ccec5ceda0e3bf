"""What can go wrong when the sizing service is asked, as types that a message can be made of.

ServiceError
├── Unreachable       no connection, or it broke
├── TimedOut          no answer in time; the question may have been recorded
├── Busy              429 or 503: `retry_after_s`
├── Refused           401 or 403: the service does not let the bot or the person
├── NotFound          404
├── Rejected          400, 409, 413, 415, 422: something in the question; `errors` says what
└── Fault             5xx, or an answer that is not what the contract says
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class ServiceError(Exception):
    """`detail` is the service's own sentence, `cause` is for the log only."""

    def __init__(self, detail: str, *, cause: str = "") -> None:
        self.detail = detail
        self.cause = cause or detail
        super().__init__(self.cause)


class Unreachable(ServiceError):
    pass


class TimedOut(ServiceError):
    def __init__(self, timeout_s: float, *, cause: str) -> None:
        self.timeout_s = timeout_s
        super().__init__("no answer in time", cause=cause)


class Busy(ServiceError):
    def __init__(self, detail: str, *, retry_after_s: float, cause: str) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(detail, cause=cause)


class NotKnown(ServiceError):
    pass


class Refused(ServiceError):
    pass


class NotFound(ServiceError):
    pass


class Fault(ServiceError):
    pass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One member of `errors` of a problem document."""

    pointer: str
    detail: str
    given: str | None = None
    allowed: str | None = None
    suggestions: tuple[str, ...] = field(default=())

    @property
    def key(self) -> str:
        """ "/gpu" → "gpu"."""
        return self.pointer.strip("/")

    @classmethod
    def of(cls, item: Any) -> FieldProblem:
        members = item if isinstance(item, dict) else {}
        return cls(
            pointer=str(members.get("pointer") or ""),
            detail=str(members.get("detail") or ""),
            given=_text(members.get("given")),
            allowed=_text(members.get("allowed")),
            suggestions=tuple(str(word) for word in members.get("suggestions") or ()),
        )


class Rejected(ServiceError):
    def __init__(self, detail: str, *, errors: tuple[FieldProblem, ...], cause: str) -> None:
        self.errors = errors
        super().__init__(detail, cause=cause)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
