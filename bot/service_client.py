"""The sizing service as the bot sees it: a few HTTP calls, each with a time limit and typed errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from bot.asker import Asker
from bot.service_errors import (
    Busy,
    Fault,
    FieldProblem,
    NotFound,
    NotKnown,
    Refused,
    Rejected,
    ServiceError,
    TimedOut,
    Unreachable,
)

CONNECT_TIMEOUT_S = 2.0
ATTEMPTS = 3
PAUSES_S = (0.2, 0.6)
LONGEST_PAUSE_S = 5.0
DEFAULT_RETRY_AFTER_S = 10.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """For whom and under which id a call is made. The id is echoed by the service and stands in both logs."""

    asker: Asker
    request_id: str


class ServiceClient:
    """Safe for threads. What did not get through is tried again, writes too: each carries an Idempotency-Key."""

    def __init__(
        self,
        *,
        base_url: str,
        timeout_s: float,
        token: str | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=base_url,
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            headers={"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})},
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
            transport=transport,
        )

    def create_sizing(
        self, request: Mapping[str, Any], call: Call, *, key: str, patience_s: float | None = None
    ) -> Json:
        """Sizes and records; the same `key` with the same request gives the same sizing again."""
        return self._ask("POST", "/api/v1/sizings", call, body=request, key=key, patience_s=patience_s)

    def read_sizing(self, identifier: str, call: Call) -> Json:
        return self._ask("GET", f"/api/v1/sizings/{quote(identifier, safe='')}", call)

    def sizings_of(self, asker: Asker, call: Call, *, limit: int) -> list[Json]:
        """The last sizings of one person, newest first."""
        found = self._ask("GET", "/api/v1/sizings", call, query={"requester": asker.on_behalf_of, "limit": limit})
        return _items(found)[:limit]

    def models(self, words: str, call: Call, *, limit: int, patience_s: float | None = None) -> list[Json]:
        query = _search(words, limit)
        return _items(self._ask("GET", "/api/v1/models", call, query=query, patience_s=patience_s))

    def gpus(self, words: str, call: Call, *, limit: int, patience_s: float | None = None) -> list[Json]:
        query = _search(words, limit)
        return _items(self._ask("GET", "/api/v1/gpus", call, query=query, patience_s=patience_s))

    def estimate(self, query: Mapping[str, Any], call: Call) -> Json:
        """The same answer, unrecorded."""
        return self._ask("GET", "/api/v1/estimate", call, query=query)

    def decide(
        self, identifier: str, decision: Mapping[str, Any], call: Call, *, key: str, patience_s: float | None = None
    ) -> Json:
        """Records what was decided on a sizing; the last decision stands."""
        return self._ask("POST", _decisions(identifier), call, body=decision, key=key, patience_s=patience_s)

    def decisions_on(self, identifier: str, call: Call) -> list[Json]:
        """First to last."""
        return _items(self._ask("GET", _decisions(identifier), call))

    def news(self, query: Mapping[str, Any], call: Call) -> tuple[list[Json], str]:
        """Decisions in the order in which they were made, and the cursor to go on with."""
        found = self._ask("GET", "/api/v1/decisions", call, query=query)
        return _items(found), str(found.get("next") or "")

    def is_alive(self) -> bool:
        try:
            return self._http.get("/healthz").is_success
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        self._http.close()

    def _ask(
        self,
        method: str,
        path: str,
        call: Call,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        patience_s: float | None = None,
    ) -> Json:
        """One call. With `patience_s` somebody's form is waiting: one attempt, no longer than that."""
        headers = {"Trainmem-On-Behalf-Of": call.asker.on_behalf_of, "X-Request-Id": call.request_id}
        if call.asker.channel:
            headers["Trainmem-Channel"] = call.asker.channel
        if key:
            headers["Idempotency-Key"] = key
        request = self._http.build_request(method, path, json=body, params=query, headers=headers)
        if patience_s is not None:
            request.extensions["timeout"] = httpx.Timeout(patience_s).as_dict()
            return self._once(request)
        for attempt in range(ATTEMPTS):
            try:
                return self._once(request)
            except (Unreachable, TimedOut, Busy) as error:
                pause_s = _pause_s(error, attempt)
                if pause_s is None:
                    raise
                self._sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, request: httpx.Request) -> Json:
        where = f"{request.method} {request.url}"
        try:
            response = self._http.send(request)
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unreachable("no connection", cause=f"{where}: {error!r}") from error
        except httpx.TimeoutException as error:
            raise TimedOut(self._timeout_s, cause=f"{where}: {error!r}") from error
        except httpx.HTTPError as error:
            raise Unreachable("no connection", cause=f"{where}: {error!r}") from error
        if response.is_success:
            return _json(response, where)
        raise problem(response, where)


def problem(response: httpx.Response, where: str) -> ServiceError:
    """The typed error behind a problem document (RFC 9457), or behind whatever a proxy sent instead of one."""
    try:
        document = response.json()
    except ValueError:
        document = None
    members = document if isinstance(document, dict) else {}
    detail = str(members.get("detail") or members.get("title") or response.reason_phrase)
    cause = f"{where}: {response.status_code} {detail}"
    status = response.status_code
    if status in (429, 503):
        return Busy(detail, retry_after_s=_retry_after_s(response), cause=cause)
    if status == 401:
        return NotKnown(detail, cause=cause)
    if status == 403:
        return Refused(detail, cause=cause)
    if status == 404 and members:
        return NotFound(detail, cause=cause)
    if status in (400, 409, 413, 415, 422) and members:
        errors = members.get("errors")
        found = tuple(FieldProblem.of(item) for item in errors) if isinstance(errors, list) else ()
        return Rejected(detail, errors=found, cause=cause)
    return Fault(detail, cause=f"{cause}: {response.text[:500]}")


def _pause_s(error: ServiceError, attempt: int) -> float | None:
    """How long to wait before the next attempt, or None when this was the last one.

    A service that did not answer in time is not asked again: it is at work on the question, and a person is waiting.
    """
    if attempt >= ATTEMPTS - 1 or isinstance(error, TimedOut):
        return None
    if isinstance(error, Busy):
        return error.retry_after_s if error.retry_after_s <= LONGEST_PAUSE_S else None
    return PAUSES_S[attempt]


def _retry_after_s(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else DEFAULT_RETRY_AFTER_S


def _json(response: httpx.Response, where: str) -> Json:
    try:
        document = response.json()
    except ValueError as error:
        raise Fault("not JSON", cause=f"{where}: {response.status_code} with a body that is not JSON") from error
    if not isinstance(document, dict):
        raise Fault("not an object", cause=f"{where}: {response.status_code} with JSON that is not an object")
    return document


def _decisions(identifier: str) -> str:
    return f"/api/v1/sizings/{quote(identifier, safe='')}/decisions"


def _search(words: str, limit: int) -> dict[str, Any]:
    return {"limit": limit} | ({"q": words} if words else {})


def _items(document: Json) -> list[Json]:
    items = document.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
