"""The desk: takes a question off Slack's hands at once, and sees to it that one answer goes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot import texts
from bot.blocks.message import Message
from bot.blocks.problems import incident_message
from bot.delivery import Courier, Destination
from bot.jobs import Job, Jobs, QueueFull

#: With fewer than this many before it, an answer comes soon enough that nobody needs to be told.
TELL_FROM = 8


@dataclass(frozen=True, slots=True)
class Desk:
    jobs: Jobs
    courier: Courier

    def take(self, work: Callable[[], Message], *destinations: Destination, request_id: str) -> str:
        """Queues the work and the delivery. Returns what the person should hear at once: "" when the answer is near."""
        job = Job(
            run=lambda: self._deliver(work(), destinations, request_id),
            abandon=lambda: self._deliver(incident_message(texts.STOPPING, request_id), destinations, request_id),
        )
        try:
            ahead = self.jobs.submit(job)
        except QueueFull:
            return texts.FULL
        return texts.QUEUED.format(ahead=ahead) if ahead >= TELL_FROM else ""

    def _deliver(self, message: Message, destinations: tuple[Destination, ...], request_id: str) -> None:
        self.courier.deliver(message, *destinations, request_id=request_id)
