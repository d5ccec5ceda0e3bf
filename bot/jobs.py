"""Work after the acknowledgement: a few threads, a line with an end, and nobody left without an answer at a stop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

import structlog

log = structlog.get_logger(__name__)


class QueueFull(Exception):
    """As many jobs wait as may wait."""


@dataclass(frozen=True, slots=True)
class Job:
    """`abandon` is called in place of `run` when the process stops before the job's turn came."""

    run: Callable[[], None]
    abandon: Callable[[], None]


class Jobs:
    """First come, first served, by `threads` threads that are started when they are needed (so after a fork)."""

    def __init__(self, *, threads: int, waiting: int) -> None:
        self._most_threads = threads
        self._most_waiting = waiting
        self._line: deque[Job] = deque()
        self._changed = Condition()
        self._threads: list[Thread] = []
        self._busy = 0
        self._closing = False

    def submit(self, job: Job) -> int:
        """Takes the job and says how many jobs wait before it: 0 when a thread is free. Raises QueueFull."""
        with self._changed:
            if self._closing or len(self._line) >= self._most_waiting:
                raise QueueFull
            ahead = max(0, len(self._line) + self._busy - self._most_threads + 1)
            self._line.append(job)
            if len(self._line) + self._busy > len(self._threads) < self._most_threads:
                thread = Thread(target=self._work, name=f"answer-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
            return ahead

    def close(self, *, within_s: float) -> int:
        """Lets running and waiting jobs finish; whatever waits after `within_s` is abandoned. Returns how many were."""
        deadline = time.monotonic() + within_s
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._line and not self._busy, timeout=within_s)
            left = list(self._line)
            self._line.clear()
        for job in left:
            _guarded(job.abandon)
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))
        return len(left)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._line or self._closing)
                if not self._line:
                    return
                job = self._line.popleft()
                self._busy += 1
            try:
                _guarded(job.run)
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        log.exception("job_failed")
