"""Who is asking, as the service and its audit should know them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_IDENTIFIER = re.compile(r"[A-Z0-9]{1,32}")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Asker:
    """A person in a workspace, and where that person asked, if that is known.

    On an org-wide installation a payload may name the enterprise only.
    """

    team: str
    user: str
    channel: str | None = None

    @property
    def on_behalf_of(self) -> str:
        """The value of the `Trainmem-On-Behalf-Of` header: "slack:T012/U345"."""
        return f"slack:{self.team}/{self.user}"

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Asker:
        """From any payload of Slack: a slash command is flat, an interaction nests, an event has `event.user`."""
        event = body.get("event") or {}
        user = body.get("user_id") or body.get("user") or event.get("user")
        team = body.get("team_id") or body.get("team") or body.get("enterprise_id") or body.get("enterprise")
        channel = body.get("channel_id") or body.get("channel") or event.get("channel")
        return cls(team=_identifier(team) or UNKNOWN, user=_identifier(user) or UNKNOWN, channel=_identifier(channel))


def _identifier(value: Any) -> str | None:
    """Slack's ids are upper-case letters and digits; anything else must not get into a header."""
    text = str(value.get("id") if isinstance(value, Mapping) else value)
    return text if _IDENTIFIER.fullmatch(text) else None
