"""The sizing service as far as the bot can tell: canned answers over real HTTP, and every way of failing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.loopback import LoopbackHandler, LoopbackServer

DATA = Path(__file__).parents[1] / "bot" / "data"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the bot."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Told:
    """What the service answers; `wait_for` holds it back, `reset` breaks the connection instead."""

    status: int
    document: Any
    headers: dict[str, str] | None = None
    wait_for: Event | None = None
    reset: bool = False


def sizing(name: str = "sizing-70b-fits") -> dict[str, Any]:
    """A recorded sizing of tests/bot/data, fresh to be changed."""
    return dict(json.loads((DATA / f"{name}.json").read_text(encoding="utf-8")))


def problem(status: int, detail: str, *errors: dict[str, Any], **headers: str) -> Told:
    document = {"type": "about:blank", "title": "Refused", "status": status, "detail": detail, "errors": list(errors)}
    return Told(status, document, headers={name.replace("_", "-"): value for name, value in headers.items()})


class FakeService(LoopbackServer):
    """A context manager. `answers` maps "METHOD /path" to what is told, or to a function of what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self.answers: dict[str, Told | Callable[[Asked], Told]] = {
            "POST /api/v1/sizings": Told(201, sizing()),
            "GET /healthz": Told(200, {"status": "ok"}),
        }
        self._lock = Lock()

    def sizings_asked(self) -> list[Asked]:
        return [one for one in self.asked if (one.method, one.path) == ("POST", "/api/v1/sizings")]

    def answer(self, request: LoopbackHandler) -> None:
        parts, raw = urlsplit(request.path), request.read_body()
        query, body = dict(parse_qsl(parts.query)), json.loads(raw) if raw else None
        told = self._tell(Asked(request.command, parts.path, query, request.lower_headers(), body))
        if told.wait_for is not None:
            told.wait_for.wait(20)
        if told.reset:
            request.break_off()
            return
        text = told.document if isinstance(told.document, str) else json.dumps(told.document)
        request.reply(told.status, text, {"Content-Type": "application/json", **(told.headers or {})})

    def _tell(self, asked: Asked) -> Told:
        with self._lock:
            self.asked.append(asked)
        told = self.answers.get(f"{asked.method} {asked.path}") or problem(404, f"there is no {asked.path}")
        return told(asked) if callable(told) else told


def in_turn(*answers: Told) -> Callable[[Asked], Told]:
    """Each answer once, then the last one for ever."""
    left = list(answers)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]
