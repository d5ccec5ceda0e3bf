"""How sure an answer is: an 80 % interval around each level of memory, from the residuals of measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from service.engine.allocator import slack_bounds
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.quantities import Residual
from service.engine.residuals import POOLED, RESIDUALS
from service.engine.run import Run
from service.engine.runtime import beside_torch_bounds
from service.engine.stacks import Stack

LEVELS = ("allocated", "reserved", "device")
THOUSAND = 1000


class Interval(NamedTuple):
    """Bounds in bytes that hold the measured value in about four of five runs."""

    low: int
    high: int


Table = Mapping[str, Mapping[str, Residual]]


def intervals(
    values: dict[str, int], layout: Layout, run: Run, stack: Stack, gpu: Gpu, *, residuals: Table = RESIDUALS,
    pooled: Mapping[str, Residual] = POOLED,
) -> dict[str, Interval]:  # fmt: skip
    """The interval of every level, given the predicted bytes of each.

    A level with fewer than ten measured cases of the stack takes the level below, widened by the bounds of the named
    quantities between them. Nothing a device shows is more than its memory, which bounds a run predicted to fit; what
    one that does not fit would need has no such bound.
    """
    found: dict[str, Interval] = {}
    for index, level in enumerate(LEVELS):
        residual = residuals[stack.name].get(level)
        if residual is not None or index == 0:
            low, high = (residual or pooled[level])[:2]
            value = values[level]
            found[level] = Interval(value * low // THOUSAND, value * high // THOUSAND)
        else:
            below = found[LEVELS[index - 1]]
            if level == "reserved":
                least, most = slack_bounds(values["allocated"], values["reserved"], layout, run, stack)
            else:
                least, most = beside_torch_bounds(layout, run, stack, gpu)
            found[level] = Interval(below.low + least, below.high + most)
    if values["device"] <= gpu.memory_bytes:
        found["device"] = Interval(found["device"].low, min(found["device"].high, gpu.memory_bytes))
    return {level: _around(bounds, values[level]) for level, bounds in found.items()}


def _around(bounds: Interval, value: int) -> Interval:
    """Bounds that hold the prediction itself, whatever the bias of the residuals."""
    return Interval(min(bounds.low, value), max(bounds.high, value))


def rests_on(stack: Stack) -> int:
    """Measured cases of `device` (or, without enough of them, of the highest level that has them) of a stack."""
    table = RESIDUALS[stack.name]
    return next((table[level].cases for level in reversed(LEVELS) if level in table), 0)
