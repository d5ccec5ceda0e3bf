"""Everything that can go wrong for a caller, and how it is told: RFC 9457 problem documents.

    TrainmemError                    service.engine.errors
    ├── InvalidInput             422  well-formed, but cannot be answered as asked; every error at once
    ├── SettingError              -   an environment variable cannot be read; the process does not start
    └── ServiceError                  what HTTP adds to the questions themselves
        ├── MalformedBody        400  the body is not JSON, or the query string is not a question
        ├── Unauthorized         401
        ├── Forbidden            403  refused by permission or policy; the refusal is audited
        ├── NotFound             404
        ├── Conflict             409
        ├── BodyTooLarge         413
        ├── WrongContentType     415
        ├── KeyReused            422  an Idempotency-Key came back with another body
        ├── TooManyRequests      429  over the rate limit; Retry-After says when to come back
        ├── Unexpected           500  a defect of ours; the log has the cause under the request id
        └── Unavailable          503  nothing happened; asking again later is safe

Nothing here imports Flask: `trainmem size --batch` prints the same documents without a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from service.engine.errors import FieldError, InvalidInput, TrainmemError

__all__ = [
    "BodyTooLarge",
    "Conflict",
    "FieldError",
    "Forbidden",
    "InvalidInput",
    "KeyReused",
    "MalformedBody",
    "NotFound",
    "ServiceError",
    "SettingError",
    "TooManyRequests",
    "TrainmemError",
    "Unauthorized",
    "Unavailable",
    "Unexpected",
    "WrongContentType",
    "problem_document",
    "problem_kinds",
]


class SettingError(TrainmemError):
    """An environment variable that cannot be read, with its name, what was read and what is allowed."""


class ServiceError(TrainmemError):
    """An answer with a status of its own. `slug` names the kind in the problem document's `type`."""

    status: ClassVar[int]
    slug: ClassVar[str]
    title: ClassVar[str]

    def __init__(
        self, detail: str, *, errors: Iterable[FieldError] = (), headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = headers or {}


class MalformedBody(ServiceError):
    """The request could not be read at all."""

    status, slug, title = 400, "malformed-request", "The request cannot be read"


class Unauthorized(ServiceError):
    """No caller, or one that is not known."""

    status, slug, title = 401, "unauthorized", "A valid token is needed"


class Forbidden(ServiceError):
    """A known caller who may not do this."""

    status, slug, title = 403, "forbidden", "This caller may not do that"


class NotFound(ServiceError):
    """No such thing under this address."""

    status, slug, title = 404, "not-found", "There is nothing here"


class Conflict(ServiceError):
    """What was asked contradicts what is recorded or still being recorded."""

    status, slug, title = 409, "conflict", "The request conflicts with another one"


class BodyTooLarge(ServiceError):
    """More bytes than any question needs."""

    status, slug, title = 413, "body-too-large", "The body is too large"


class WrongContentType(ServiceError):
    """The body is not declared to be JSON."""

    status, slug, title = 415, "wrong-content-type", "The body must be JSON"


class KeyReused(ServiceError):
    """The same Idempotency-Key with another question."""

    status, slug, title = 422, "idempotency-key-reused", "This Idempotency-Key belongs to another request"


class TooManyRequests(ServiceError):
    """More requests than this caller may send. Retry-After says when the next one is let in."""

    status, slug, title = 429, "too-many-requests", "Too many requests"

    def __init__(self, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


class Unexpected(ServiceError):
    """A defect of ours. The log has the cause under the request id."""

    status, slug, title = 500, "unexpected", "Something went wrong that should not have"


class Unavailable(ServiceError):
    """The database does not answer. Nothing was written."""

    status, slug, title = 503, "unavailable", "The service cannot record right now"

    def __init__(self, detail: str, *, retry_after_s: int = 2) -> None:
        super().__init__(detail, headers={"Retry-After": str(retry_after_s)})


INVALID_REQUEST = (422, "invalid-request", "The request cannot be answered as it was asked")


def problem_kinds() -> list[tuple[int, str, str, str]]:
    """(status, slug, title, meaning) of every kind of problem, for the documentation page."""
    kinds = [(*INVALID_REQUEST, (InvalidInput.__doc__ or "").splitlines()[0])]
    for kind in ServiceError.__subclasses__():  # not theirs: those say more of the same kind
        kinds.append((kind.status, kind.slug, kind.title, (kind.__doc__ or "").splitlines()[0]))
    return sorted(kinds)


def problem_document(
    error: TrainmemError, *, instance: str | None = None, request_id: str | None = None
) -> dict[str, Any]:
    """The RFC 9457 problem document for one of our exceptions."""
    if isinstance(error, ServiceError):
        status, slug, title, detail, errors = error.status, error.slug, error.title, error.detail, error.errors
    elif isinstance(error, InvalidInput):
        status, slug, title = INVALID_REQUEST
        detail, errors = str(error), error.errors
    else:
        raise TypeError(f"{type(error).__name__} has no place in a problem document")
    return {
        "type": f"/docs/problems#{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
        "request_id": request_id,
        "errors": [_field(one) for one in errors],
    }


def _field(error: FieldError) -> dict[str, Any]:
    return {
        "pointer": error.pointer,
        "detail": error.detail,
        "given": error.given,
        "allowed": error.allowed,
        "suggestions": list(error.suggestions),
        "position": error.position,
    }
