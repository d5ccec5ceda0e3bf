"""Work is done in the order it came, no more of it is taken than can wait, and a stop leaves nobody without a word."""

from __future__ import annotations

from functools import partial
from threading import Event

import pytest

from bot.jobs import Job, Jobs, QueueFull


def nothing() -> None:
    pass


def held(started: Event, release: Event) -> Job:
    def run() -> None:
        started.set()
        assert release.wait(10)

    return Job(run=run, abandon=nothing)


def test_jobs_are_done_first_come_first_served() -> None:
    jobs, done = Jobs(threads=1, waiting=100), list[int]()
    started, release = Event(), Event()
    jobs.submit(held(started, release))
    ahead = [jobs.submit(Job(run=partial(done.append, number), abandon=nothing)) for number in range(5)]
    release.set()
    assert jobs.close(within_s=10) == 0
    assert done == [0, 1, 2, 3, 4]
    assert ahead == [1, 2, 3, 4, 5]


def test_a_free_thread_means_nobody_is_ahead() -> None:
    jobs, started, release = Jobs(threads=2, waiting=10), Event(), Event()
    assert jobs.submit(held(started, release)) == 0
    assert started.wait(10)
    assert jobs.submit(held(Event(), release)) == 0
    release.set()
    jobs.close(within_s=10)


def test_a_full_line_refuses_instead_of_growing() -> None:
    jobs, started, release = Jobs(threads=1, waiting=2), Event(), Event()
    jobs.submit(held(started, release))
    assert started.wait(10)
    jobs.submit(Job(nothing, nothing))
    jobs.submit(Job(nothing, nothing))
    with pytest.raises(QueueFull):
        jobs.submit(Job(nothing, nothing))
    release.set()
    jobs.close(within_s=10)


def test_a_job_that_raises_stops_neither_its_thread_nor_the_others() -> None:
    jobs, done = Jobs(threads=1, waiting=10), Event()

    def fail() -> None:
        raise ValueError("a defect")

    jobs.submit(Job(fail, nothing))
    jobs.submit(Job(done.set, nothing))
    assert done.wait(10)
    jobs.close(within_s=10)


def test_a_stop_finishes_what_runs_and_tells_what_waits() -> None:
    jobs, started, release, told = Jobs(threads=1, waiting=10), Event(), Event(), list[str]()
    jobs.submit(held(started, release))
    assert started.wait(10)
    for name in ("a", "b"):
        jobs.submit(Job(run=partial(told.append, "ran"), abandon=partial(told.append, name)))
    assert jobs.close(within_s=0.05) == 2
    assert told == ["a", "b"]
    with pytest.raises(QueueFull):
        jobs.submit(Job(nothing, nothing))
    release.set()
