"""How sure an answer is: an interval around each level of memory, per stack."""

from __future__ import annotations

from typing import NamedTuple

from service.engine.stacks import Stack


class Interval(NamedTuple):
    """Bounds in bytes that hold the measured value in about four of five runs."""

    low: int
    high: int


#: Low and high in thousandths of the prediction, before residuals of measured runs replace them.
PRIOR_PERMILLE = {
    "allocated": (920, 1080),
    "reserved": (880, 1150),
    "device": (850, 1250),
}


def interval(level: str, value: int, stack: Stack) -> Interval:
    """The interval of one level around a predicted value."""
    low, high = PRIOR_PERMILLE[level]
    return Interval(value * low // 1000, value * high // 1000)
