"""Slack on loopback: takes what the bot sends, keeps it, judges it, and answers as Slack would.

A `response_url` takes five messages; blocks against the rules are refused with `invalid_blocks`; unknown tokens with
`invalid_auth`; missing permissions with `missing_scope`. `script` makes the next answers anything: slow, 429, reset.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Event
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.support import slack_block_kit
from tests.support.loopback import LoopbackHandler, LoopbackServer

BOT_TOKEN = "xoxb-test-token"
APP_TOKEN = "xapp-test-token"
ALL_SCOPES = frozenset({"commands", "chat:write", "app_mentions:read", "links:read", "links:write", "files:write"})
SCOPE_OF = {
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "chat.unfurl": "links:write",
}
RESPONSE_URL_USES = 5


@dataclass(frozen=True, slots=True)
class Received:
    """One request of the bot, its body read, and what it was answered."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    status: int
    answer: str
    at_s: float

    @property
    def method(self) -> str:
        """The Web API method: "/api/auth.test" → "auth.test"."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Scripted:
    """An answer out of the ordinary. `wait_for` holds it back, `reset` breaks the connection instead."""

    status: int = 200
    body: str = "ok"
    headers: dict[str, str] = field(default_factory=dict)
    wait_for: Event | None = None
    reset: bool = False
    then_judge: bool = False  # wait, then answer as usual


RATE_LIMITED = Scripted(429, '{"ok":false,"error":"rate_limited"}', {"Retry-After": "1"})


class FakeSlack(LoopbackServer):
    """A context manager; `url` is the loopback address, `api_url` goes where https://slack.com/api would."""

    def __init__(self, *, scopes: frozenset[str] = ALL_SCOPES) -> None:
        super().__init__()
        self.scopes = scopes
        self.socket_url: str | None = None
        self.received: list[Received] = []
        self._changed = Condition()
        self._scripts: dict[str, deque[Scripted]] = defaultdict(deque)
        self._uses: dict[str, int] = {}
        self._expired: set[str] = set()

    @property
    def api_url(self) -> str:
        return f"{self.url}/api"

    def response_url(self, *, used: int = 0, expired: bool = False) -> str:
        """A new address for the answers to one command."""
        path = f"/commands/T0TEAM/{len(self._uses) + 1}/secret"
        self._uses[path] = used
        if expired:
            self._expired.add(path)
        return self.url + path

    def script(self, where: str, *answers: Scripted) -> None:
        """The next answers of a Web API method or of a `response_url`."""
        path = urlsplit(where).path if "://" in where else f"/api/{where}"
        self._scripts[path].extend(answers)

    def messages(self, response_url: str) -> list[dict[str, Any]]:
        """What people saw of it: the payloads that were taken."""
        path = urlsplit(response_url).path
        return [one.body for one in self.received if one.path == path and one.status == 200]

    def calls(self, method: str) -> list[dict[str, Any]]:
        """Bodies of the calls of a Web API method that were answered with ok."""
        return [one.body for one in self.received if one.method == method and '"ok": true' in one.answer]

    def wait_for(self, condition: Callable[[Self], Any], timeout_s: float = 10.0) -> Any:
        """Returns what `condition` gives once it is true of what was received; fails the test after `timeout_s`."""
        with self._changed:
            found = self._changed.wait_for(lambda: condition(self), timeout=timeout_s)
        seen = [(one.path, one.status, one.answer[:80]) for one in self.received]
        assert found, f"not seen within {timeout_s} s; received: {seen}"
        return found

    def message(self, response_url: str, number: int = 1, timeout_s: float = 10.0) -> dict[str, Any]:
        """The n-th message that was taken, waiting for it."""
        self.wait_for(lambda slack: len(slack.messages(response_url)) >= number, timeout_s)
        return self.messages(response_url)[number - 1]

    # The server's side ----------------------------------------------------------------------------------------------

    def answer(self, request: LoopbackHandler) -> None:
        headers, path = request.lower_headers(), urlsplit(request.path).path
        body = read_body(headers.get("content-type", ""), request.read_body())
        script = self._next_script(path)
        if script is not None and script.wait_for is not None:
            script.wait_for.wait(20)
        if script is not None and script.reset:
            self._keep(Received(path, headers, body, 0, "reset", time.monotonic()))
            request.break_off()
            return
        if script is None or script.then_judge:
            status, answer = self.judge(path, headers, body)
        else:
            status, answer = script.status, script.body
        self._keep(Received(path, headers, body, status, answer, time.monotonic()))
        scopes = {"x-oauth-scopes": ",".join(sorted(self.scopes))} if path.startswith("/api/") else {}
        kind = {"Content-Type": "application/json" if answer.startswith("{") else "text/plain"}
        request.reply(status, answer, {**kind, **scopes, **(script.headers if script else {})})

    def _next_script(self, path: str) -> Scripted | None:
        with self._changed:
            return self._scripts[path].popleft() if self._scripts[path] else None

    def _keep(self, received: Received) -> None:
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()

    def judge(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, str]:
        if path.startswith("/commands/"):
            return self._judge_response(path, body)
        return 200, json.dumps(self._judge_call(path.rpartition("/")[2], headers, body))

    def _judge_response(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        if path not in self._uses or path in self._expired:
            return 404, '{"ok":false,"error":"expired_url"}'
        with self._changed:
            if self._uses[path] >= RESPONSE_URL_USES:
                return 404, '{"ok":false,"error":"used_url"}'
            if slack_block_kit.problems(body):
                return 400, "invalid_blocks"
            self._uses[path] += 1
        return 200, "ok"

    def _judge_call(self, method: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in (BOT_TOKEN, APP_TOKEN):
            return {"ok": False, "error": "invalid_auth"}
        if SCOPE_OF.get(method, "commands") not in self.scopes:
            return {
                "ok": False,
                "error": "missing_scope",
                "needed": SCOPE_OF[method],
                "provided": ",".join(sorted(self.scopes)),
            }
        found = self._payload_problems(method, body)
        if found:
            return {"ok": False, "error": "invalid_blocks", "errors": found, "response_metadata": {"messages": found}}
        return {"ok": True, **ANSWERS.get(method, nothing_more)(self, body)}

    def _payload_problems(self, method: str, body: dict[str, Any]) -> list[str]:
        if method.startswith("views."):
            view = body.get("view", {})
            return slack_block_kit.problems(view, view.get("type", "modal"))
        if method == "chat.unfurl":
            return [
                one
                for unfurl in body.get("unfurls", {}).values()
                for one in slack_block_kit.problems({"text": "-", **unfurl})
            ]
        if method.startswith("chat.") and slack_block_kit.blocks_chars(body) > 13_200:
            return ["msg_blocks_too_long"]
        return slack_block_kit.problems(body) if method.startswith("chat.") else []


def nothing_more(slack: FakeSlack, body: dict[str, Any]) -> dict[str, Any]:
    return {}


ANSWERS: dict[str, Callable[[FakeSlack, dict[str, Any]], dict[str, Any]]] = {
    "auth.test": lambda slack, body: {
        "url": "https://example.slack.com/",
        "team": "Example",
        "team_id": "T0TEAM",
        "user": "trainmem",
        "user_id": "U0BOT",
        "bot_id": "B0BOT",
    },
    "apps.connections.open": lambda slack, body: {"url": slack.socket_url},
    "chat.postMessage": lambda slack, body: {"ts": f"{time.time():.6f}", "channel": body.get("channel")},
    "views.open": lambda slack, body: {"view": {"id": "V0VIEW", "hash": "1.a", **body.get("view", {})}},
    "views.update": lambda slack, body: {"view": {"id": body.get("view_id", "V0VIEW"), **body.get("view", {})}},
}


def read_body(content_type: str, raw: bytes) -> dict[str, Any]:
    """JSON as it is; a form with its JSON members read, as Slack reads them."""
    if "json" in content_type:
        return dict(json.loads(raw or b"{}"))
    form = {name: values[-1] for name, values in parse_qs(raw.decode(), keep_blank_values=True).items()}
    return {name: json.loads(value) if value[:1] in ("[", "{") else value for name, value in form.items()}
