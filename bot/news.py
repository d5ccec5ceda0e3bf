"""News of decisions: whoever asked in Slack hears what was decided, also when it was decided elsewhere.

One thread of one process asks the service every few seconds. With a place to keep its cursor nothing is missed over a
restart; without one the news begins when the bot starts.
"""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import IO

import structlog

from bot import ids
from bot.asker import UNKNOWN, Asker
from bot.blocks.decision import decision_message
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.service_client import Call, ServiceClient
from bot.service_errors import ServiceError

log = structlog.get_logger(__name__)

NOBODY = Asker(UNKNOWN, UNKNOWN)

Tell = Callable[[str, Message], None]
"""Sends a message to a user id."""


class News:
    """`tell` sends a direct message. `state_dir` is where the cursor is kept; None keeps it in memory."""

    def __init__(
        self, *, service: ServiceClient, links: Links, tell: Tell, every_s: float, state_dir: Path | None, name: str
    ) -> None:
        self._service = service
        self._links = links
        self._tell = tell
        self._every_s = every_s
        digest = sha256(name.encode()).hexdigest()[:16]
        self._kept = state_dir / f"news-{digest}.cursor" if state_dir else None
        self._lock_path = Path(tempfile.gettempdir()) / f"trainmem-bot-news-{digest}.lock"
        self._lock: IO[str] | None = None
        self._stop = Event()
        self._thread = Thread(target=self._run, name="news", daemon=True)
        self._query: dict[str, str] = self._first_query()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)
        if self._lock is not None:
            self._lock.close()

    def look(self) -> int:
        """Asks once and tells everybody concerned; returns how many decisions there were."""
        items, following = self._service.news({"kind": "slack", **self._query}, Call(NOBODY, ids.incident_id()))
        for item in items:
            user = slack_user(item["sizing"]["requester"])
            if user is not None and item["decided_by"] != item["sizing"]["requester"]:
                self._tell(user, decision_message(item, str(item["sizing"]["model"]), self._links))
        self._query = {"cursor": following}
        if self._kept is not None:
            replaced = self._kept.with_suffix(".new")
            replaced.write_text(following, encoding="utf-8")
            replaced.replace(self._kept)
        return len(items)

    def _first_query(self) -> dict[str, str]:
        if self._kept is not None and self._kept.is_file():
            return {"cursor": self._kept.read_text(encoding="utf-8").strip()}
        return {"since": datetime.now(UTC).isoformat(timespec="microseconds")}

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            if not self._is_ours():
                continue
            try:
                self.look()
            except ServiceError as error:
                log.warning("no_news", cause=error.cause)
            except Exception:
                if not self._stop.is_set():  # else the connection was closed under a look that took too long
                    log.exception("news_failed")

    def _is_ours(self) -> bool:
        """Several workers on a machine share one lock, so that nobody is told twice."""
        if self._lock is None:
            lock = self._lock_path.open("w")
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = lock
            if self._lock is None:
                lock.close()
        return self._lock is not None


def slack_user(requester: str) -> str | None:
    """ "slack:T012/U345" → "U345"."""
    kind, _, rest = requester.partition(":")
    user = rest.rpartition("/")[2]
    return user if kind == "slack" and Asker.of({"user_id": user}).user == user != UNKNOWN else None
