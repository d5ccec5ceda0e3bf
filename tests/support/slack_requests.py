"""Requests as Slack makes them: signed with the app's secret, form-encoded, each press with a trigger of its own."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

TEAM, USER, CHANNEL = "T0TEAM", "U0USER", "C0CHANNEL"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the bot said to Slack's own request."""

    status: int
    body: str
    headers: dict[str, str]
    took_s: float

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(slots=True)
class SlackCaller:
    """Sends to the bot at `url` as Slack's servers do."""

    url: str
    secret: str
    team: str = TEAM
    user: str = USER
    headers: dict[str, str] = field(default_factory=dict)

    def command(self, text: str, response_url: str, *, trigger_id: str | None = None, **more: str) -> Answer:
        return self.send(command_form(text, response_url, trigger_id or new_trigger(), self.team, self.user) | more)

    def interaction(self, payload: dict[str, Any]) -> Answer:
        who = {"team": {"id": self.team, "domain": "example"}, "user": {"id": self.user, "team_id": self.team}}
        return self.send({"payload": json.dumps({**who, "trigger_id": new_trigger(), **payload})})

    def press(
        self,
        action: dict[str, Any],
        response_url: str,
        *,
        block_id: str = "row",
        ephemeral: bool = True,
        trigger_id: str | None = None,
    ) -> Answer:
        """A press of a button ({"action_id", "value"}) or a choice in a menu, under a message of the bot."""
        chosen = {"type": "static_select"} if "selected_option" in action else {"type": "button"}
        payload = {
            "type": "block_actions",
            "container": {"type": "message", "is_ephemeral": ephemeral, "channel_id": CHANNEL},
            "channel": {"id": CHANNEL, "name": "general"},
            "response_url": response_url,
            "actions": [{**chosen, "block_id": block_id, "action_ts": "1.2", **action}],
        }
        return self.interaction(payload | ({"trigger_id": trigger_id} if trigger_id else {}))

    def submit(self, view: dict[str, Any], values: dict[str, Any]) -> Answer:
        """A submitted form: `values` maps each block to {action_id: what stands in the field}."""
        sent = {**view, "id": "V0VIEW", "state": {"values": values}}
        return self.interaction({"type": "view_submission", "view": sent})

    def type_ahead(self, action_id: str, typed: str) -> Answer:
        """Slack asking for the options of a select while somebody types."""
        return self.interaction({"type": "block_suggestion", "action_id": action_id, "block_id": "b", "value": typed})

    def event(self, event: dict[str, Any], **more: Any) -> Answer:
        envelope = {
            "type": "event_callback",
            "team_id": self.team,
            "event_id": f"Ev{next(_numbers)}",
            "event": event,
            **more,
        }
        return self.send_body(json.dumps(envelope).encode(), content_type="application/json")

    def send(self, form: dict[str, str]) -> Answer:
        return self.send_body(urlencode(form).encode(), content_type="application/x-www-form-urlencoded")

    def send_body(self, body: bytes, *, content_type: str, at_s: int | None = None, signed: bool = True) -> Answer:
        timestamp = str(int(time.time()) if at_s is None else at_s)
        headers = {"Content-Type": content_type, "X-Slack-Request-Timestamp": timestamp}
        if signed:
            headers["X-Slack-Signature"] = sign(self.secret, timestamp, body)
        return self.post(body, headers | self.headers)

    def post(self, body: bytes, headers: dict[str, str]) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        started_s = time.monotonic()
        try:
            connection.request("POST", parts.path, body=body, headers=headers)
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(response.status, text, dict(response.getheaders()), time.monotonic() - started_s)
        finally:
            connection.close()


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's signature, from its documentation: HMAC-SHA256 over version, timestamp and the raw body."""
    return "v0=" + hmac.new(secret.encode(), b"v0:%b:%b" % (timestamp.encode(), body), hashlib.sha256).hexdigest()


def new_trigger() -> str:
    return f"{next(_numbers)}.{time.time_ns()}.abcdef"


def command_form(text: str, response_url: str, trigger_id: str, team: str = TEAM, user: str = USER) -> dict[str, str]:
    return {
        "token": "legacy",
        "team_id": team,
        "team_domain": "example",
        "channel_id": CHANNEL,
        "channel_name": "general",
        "user_id": user,
        "user_name": "ada",
        "command": "/trainmem",
        "text": text,
        "api_app_id": "A0APP",
        "is_enterprise_install": "false",
        "response_url": response_url,
        "trigger_id": trigger_id,
    }
