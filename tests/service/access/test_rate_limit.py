"""A minute's worth at once, then a steady rate; who forks counts together."""

from __future__ import annotations

import os

from service.access.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.ns = 10**18

    def __call__(self) -> int:
        return self.ns


def test_a_minutes_worth_is_let_in_at_once_and_then_one_at_a_time() -> None:
    clock = Clock()
    limit = RateLimit(6, clock_ns=clock)
    assert [limit.wait_s("a-burst") for _ in range(6)] == [0.0] * 6
    assert limit.wait_s("a-burst") == 10.0
    clock.ns += 9_999_999_999
    assert limit.wait_s("a-burst") > 0
    clock.ns += 1
    assert limit.wait_s("a-burst") == 0.0
    assert limit.wait_s("a-burst") == 10.0


def test_callers_do_not_share_an_allowance() -> None:
    limit = RateLimit(1, clock_ns=Clock())
    assert limit.wait_s("somebody") == 0.0 and limit.wait_s("somebody") > 0
    assert limit.wait_s("somebody else") == 0.0


def test_zero_is_no_limit() -> None:
    limit = RateLimit(0, clock_ns=Clock())
    assert {limit.wait_s("anybody") for _ in range(100)} == {0.0}


def test_workers_that_were_forked_count_together() -> None:
    clock = Clock()
    limit = RateLimit(2, clock_ns=clock)
    child = os.fork()
    if child == 0:  # pragma: no cover
        os._exit(0 if limit.wait_s("two workers") == 0.0 == limit.wait_s("two workers") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert limit.wait_s("two workers") > 0
