"""The bot as a Bolt app: settings in, listeners wired; what carries the requests (HTTP, Socket Mode) is elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from slack_bolt import App, BoltContext, BoltResponse
from slack_bolt.authorization import AuthorizeResult
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import ConnectionErrorRetryHandler, RateLimitErrorRetryHandler

from bot import ids, listeners, texts
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.problems import incident_message
from bot.delivery import Conversation, Courier
from bot.desk import Desk
from bot.jobs import Jobs
from bot.news import News
from bot.replies import Replies
from bot.replies.question import Sources
from bot.service_client import ServiceClient
from bot.settings import Settings

log = structlog.get_logger(__name__)

API_TIMEOUT_S = 10
VIEW_THREADS = 4


@dataclass(frozen=True, slots=True)
class Bot:
    """What runs in one process: the Bolt app, and what has to be closed when the process stops."""

    app: App
    service: ServiceClient
    desk: Desk
    news: News

    def close(self, *, within_s: float) -> None:
        """Answers what was taken, as far as `within_s` allows; tells the others to ask again."""
        self.news.close()
        abandoned = self.desk.close(within_s=within_s)
        self.service.close()
        log.info("stopped", abandoned=abandoned)


def create_bot(settings: Settings) -> Bot:
    client = web_client(settings)
    identity = Identity(client, settings.bot_token or "")
    app = App(
        # Listeners only acknowledge and queue, so they may run in the thread of the request: no hand-over, no polling.
        process_before_response=True,
        signing_secret=settings.signing_secret or "",
        client=client,
        authorize=identity.authorizer(),
        logger=logging.getLogger("bot.bolt"),
    )
    service = ServiceClient(
        base_url=settings.service_url, timeout_s=settings.service_timeout_s, token=settings.service_token
    )
    desk = Desk(
        answers=Jobs(threads=settings.answering, waiting=settings.waiting),
        views=Jobs(threads=VIEW_THREADS, waiting=settings.waiting),
        courier=Courier(),
    )
    replies = Replies(Sources(service, Links(settings.public_url)))
    listeners.register(app, desk, replies)
    app.error(answer_failure)
    identity.learn()
    return Bot(app=app, service=service, desk=desk, news=decision_news(settings, client, service))


def decision_news(settings: Settings, client: WebClient, service: ServiceClient) -> News:
    """Not started yet: that is for a process that serves, not for a test or a check."""
    speaking = WebClient(token=settings.bot_token, base_url=client.base_url, timeout=API_TIMEOUT_S)
    courier = Courier()

    def tell(user: str, message: Message) -> None:
        courier.deliver(message, Conversation(speaking, user), request_id=ids.incident_id())

    return News(
        service=service,
        links=Links(settings.public_url),
        tell=tell,
        every_s=settings.news_every_s,
        state_dir=Path(settings.state_dir) if settings.state_dir else None,
        name=f"{settings.bot_token}@{settings.service_url}",
    )


def web_client(settings: Settings) -> WebClient:
    return WebClient(
        base_url=f"{settings.slack_api_url}/",
        timeout=API_TIMEOUT_S,
        retry_handlers=[ConnectionErrorRetryHandler(), RateLimitErrorRetryHandler(max_retry_count=2)],
    )


class Identity:
    """Who the bot is in its workspace.

    Slack is asked once, at start. A failure is logged and does not stop anything: commands are answered through their
    `response_url`, which needs no token, and Bolt is never left to ask inside somebody's three seconds.
    """

    def __init__(self, client: WebClient, token: str) -> None:
        self._client = client
        self._token = token
        self._known: dict[str, Any] = {}

    def learn(self) -> None:
        try:
            answer = self._client.auth_test(token=self._token)
        except SlackApiError as error:
            status = error.response.status_code
            event = "slack_token_refused" if status < 500 else "slack_not_reached"
            log.error(event, status=status, error=error.response.get("error"))
        except OSError as error:
            log.error("slack_not_reached", error=repr(error))
        else:
            self._known = {"bot_id": answer.get("bot_id"), "bot_user_id": answer.get("user_id")}
            log.info("slack_knows_us", team=answer.get("team_id"), bot_user=answer.get("user_id"))

    def authorizer(self) -> Callable[[str | None, str | None], AuthorizeResult]:
        """A plain function: Bolt passes arguments by the names it finds, and would look for one called `self`."""

        def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, bot_token=self._token, **self._known)

        return authorize


def answer_failure(error: Exception, context: BoltContext) -> BoltResponse:
    """A defect of ours in a listener: the person gets an id, the log the trace, and Slack no status to retry on."""
    request_id = ids.incident_id()
    log.error("listener_failed", id=request_id, exc_info=error)
    body = {"response_type": "ephemeral"} | incident_message(texts.BROKEN, request_id).payload()
    return BoltResponse(status=200, body=body)
