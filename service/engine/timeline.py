"""The moments of a step: what is alive in each, and which one is the peak."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from service.engine.elementwise import Int, maximum
from service.engine.ledger import INSTANTS, MOMENTS, TERMS, Bundle, TermName


def from_moment(first: str, copies: Int = 1) -> tuple[Int, ...]:
    """Alive from `first` to the end of the step, the optimizer step included."""
    start = INSTANTS.index(first)
    return tuple(copies if index >= start else 0 for index in range(len(INSTANTS)))


def during(*instants: str, copies: Int = 1) -> tuple[Int, ...]:
    """Alive in the named instants only."""
    return tuple(copies if instant in instants else 0 for instant in INSTANTS)


ALWAYS: tuple[Int, ...] = (1,) * len(INSTANTS)


class Timeline(NamedTuple):
    """Bytes of each term at each instant of a step, on one rank: `terms[term][instant]`."""

    terms: dict[TermName, list[Int]]

    def allocated(self, instant: int) -> Int:
        """Everything torch's allocator has handed out at this instant."""
        total: Int = 0
        for by_instant in self.terms.values():
            total = total + by_instant[instant]
        return total

    def peak(self) -> Int:
        """The largest allocated sum over the instants."""
        largest: Int = 0
        for instant in range(len(INSTANTS)):
            largest = maximum(largest, self.allocated(instant))
        return largest

    def largest(self, term: TermName) -> Int:
        """The most of one term that is alive at any instant."""
        most: Int = 0
        for size in self.terms[term]:
            most = maximum(most, size)
        return most

    def peak_instant(self) -> int:
        """Index of the first instant with the largest sum (one layout only)."""
        sums = [int(np.max(self.allocated(instant))) for instant in range(len(INSTANTS))]
        return sums.index(max(sums))

    def at(self, instant: int) -> dict[TermName, Int]:
        """Bytes of every term at one instant, in the order of the terms."""
        return {term: self.terms[term][instant] for term in TERMS if term in self.terms}


def timeline(bundles: Iterable[Bundle]) -> Timeline:
    """Sum the bundles of one rank per term and instant."""
    terms: dict[TermName, list[Int]] = {term: [0] * len(INSTANTS) for term in TERMS if term != "runtime"}
    for bundle in bundles:
        size, by_instant = bundle.bytes, terms[bundle.term]
        counted: Int = 0
        product: Int = 0
        for index, copies in enumerate(bundle.alive):
            if isinstance(copies, int) and copies == 0:
                continue
            if copies is not counted:
                counted, product = copies, size * copies
            by_instant[index] = by_instant[index] + product
    return Timeline(terms)


def instant_of_moment(line: Timeline, moment: str) -> int:
    """The instant that stands for a moment: of the two looks at a layer's backward, the fuller one."""
    if moment != "layer_backward":
        return INSTANTS.index(moment)
    first, last = INSTANTS.index("layer_backward_first"), INSTANTS.index("layer_backward_last")
    return first if int(np.max(line.allocated(first))) >= int(np.max(line.allocated(last))) else last


def moment_name(instant: int) -> str:
    """The public name of an instant."""
    name = INSTANTS[instant]
    return "layer_backward" if name.startswith("layer_backward") else name


def moments(line: Timeline) -> list[tuple[str, int]]:
    """Each moment of the step with the instant that stands for it, in order."""
    return [(moment, instant_of_moment(line, moment)) for moment in MOMENTS]
