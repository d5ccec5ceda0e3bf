"""The desk: takes a question off Slack's hands at once, and sees to it that one answer goes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from slack_sdk.errors import SlackApiError

from bot import texts
from bot.blocks.message import Message
from bot.blocks.problems import incident_message
from bot.delivery import Courier, Destination
from bot.jobs import Job, Jobs, QueueFull

log = structlog.get_logger(__name__)

#: With fewer than this many before it, an answer comes soon enough that nobody needs to be told.
TELL_FROM = 8


@dataclass(frozen=True, slots=True)
class Desk:
    """`answers` may take seconds each. `views` are forms and Home tabs: short, and a form cannot wait its turn."""

    answers: Jobs
    views: Jobs
    courier: Courier

    def take(self, work: Callable[[], Message], *destinations: Destination, request_id: str, heard: bool = True) -> str:
        """Queues the work and the delivery. Returns what the person should hear at once: "" when the answer is near.

        `heard` is whether Slack shows the words of the acknowledgement; where it does not, a refusal is sent.
        """

        def say(message: Message) -> None:
            self.courier.deliver(message, *destinations, request_id=request_id)

        job = Job(
            run=lambda: say(made(work, request_id)),
            abandon=lambda: say(incident_message(texts.STOPPING, request_id)),
        )
        try:
            ahead = self.answers.submit(job)
        except QueueFull:
            log.error("no_more_taken", id=request_id)
            if not heard:
                self.show(lambda: say(incident_message(texts.FULL, request_id)), request_id=request_id)
            return texts.FULL
        return texts.QUEUED.format(ahead=ahead) if ahead >= TELL_FROM else ""

    def show(self, view: Callable[[], None], *destinations: Destination, request_id: str) -> None:
        """Queues the opening of a view. When Slack refuses it, the person is told at the destinations."""

        def run() -> None:
            try:
                view()
            except SlackApiError as error:
                log.error("view_not_shown", id=request_id, error=error.response.get("error"))
                refused()

        def refused() -> None:
            if destinations:
                message = incident_message(texts.FORM_NOT_OPENED, request_id)
                self.courier.deliver(message, *destinations, request_id=request_id)

        try:
            self.views.submit(Job(run=run, abandon=refused))
        except QueueFull:
            log.error("view_not_shown", id=request_id, error="too many views are waiting")

    def close(self, *, within_s: float) -> int:
        """Finishes what was taken as far as time allows; returns how many people were asked to come back."""
        return self.views.close(within_s=within_s / 5) + self.answers.close(within_s=within_s)


def made(work: Callable[[], Message], request_id: str) -> Message:
    """What the work makes; a defect of ours is told with an id under which the log has the trace."""
    try:
        return work()
    except Exception as error:
        log.error("answer_failed", id=request_id, exc_info=error)
        return incident_message(texts.BROKEN, request_id)
