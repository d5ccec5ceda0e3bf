"""What can be pressed in a message: as a value of its own, so that listeners stay short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slack_sdk import WebClient

from bot import ids
from bot.asker import Asker
from bot.blocks.presses import sizing_of
from bot.delivery import Conversation, Destination, ResponseUrl
from bot.replies.question import Question


@dataclass(frozen=True, slots=True)
class Press:
    """One press of a button or a choice in a menu, by whom, and where the answer may go."""

    question: Question
    value: str
    sizing_id: str
    response_url: str
    private: bool
    trigger_id: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Press:
        """From a `block_actions` payload."""
        action = body["actions"][0]
        value = (action.get("selected_option") or action).get("value") or ""
        trigger_id = body.get("trigger_id") or ""
        question = Question(
            text="",
            asker=Asker.of(body),
            key=ids.idempotency_key(trigger_id, action["action_id"]),
            request_id=ids.incident_id(),
        )
        return cls(
            question=question,
            value=value,
            sizing_id=sizing_of(action.get("block_id") or "") or "",
            response_url=body.get("response_url") or "",
            private=bool((body.get("container") or {}).get("is_ephemeral")),
            trigger_id=trigger_id,
        )

    def in_place(self, client: WebClient) -> tuple[Destination, ...]:
        """The message itself when only the asker sees it; otherwise an answer of the asker's own."""
        return self._to(client, replace=self.private)

    def beside(self, client: WebClient) -> tuple[Destination, ...]:
        """A new message that only the asker sees."""
        return self._to(client, replace=False)

    def for_all(self) -> tuple[Destination, ...]:
        """A new message for everybody in the conversation."""
        return (ResponseUrl(self.response_url, public=True),)

    def _to(self, client: WebClient, *, replace: bool) -> tuple[Destination, ...]:
        """Where it was pressed, then the asker's direct messages; the Home tab has no address for answers."""
        pressed = (ResponseUrl(self.response_url, replace=replace),) if self.response_url else ()
        return (*pressed, Conversation(client, self.question.asker.user))
