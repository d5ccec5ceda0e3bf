"""The smallest number of GPUs that holds a run, the layout to run it with, and why fewer do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.engine.ledger import TERMS
from service.engine.question import Plan, Question
from service.engine.search import space
from service.engine.search.everywhere import best_of_all_counts
from service.engine.search.minimum import fits, grid, minimum, tightest
from service.engine.search.plans import plan_of
from service.engine.search.ranking import Fit, Goal, ranked, ranking
from service.engine.size import Sizing


class Shortfall(NamedTuple):
    """Why a count is too small: its tightest layout, the bytes missing, and the term that weighs most there."""

    plan: Plan
    gpus: int
    missing_bytes: int
    term: str


class Recommendation(NamedTuple):
    """A plan that fits, and the smallest count on which any does (None where nobody looked)."""

    plan: Plan
    minimum_gpus: int | None
    fit: Fit


def recommend(question: Question, goal: Goal = "gpus") -> Recommendation | None:
    """The best plan by `goal`; None when no count up to `space.MOST_GPUS` holds the run.

    `gpus`: the smallest count, and of the layouts that fit there the one that takes least time for the same tokens.
    `time`, `cost`: the least time, or GPU time, for the same tokens over every count from the smallest on.
    """
    smallest = minimum(question)
    if smallest is None:
        return None
    if goal != "gpus":
        found = best_of_all_counts(question, smallest, goal)
        if found is not None:
            return Recommendation(found.plan(), smallest, found)
    return best(question, smallest, smallest)


def best(question: Question, gpus: int, smallest: int | None = None) -> Recommendation | None:
    """The best layout of exactly `gpus` GPUs that fits; None when none does."""
    found = ranking(question, gpus)
    row = found.first_fit()
    if row is None:
        return None
    fit = Fit(found, row)
    return Recommendation(fit.plan(), smallest, fit)


def closest(question: Question, gpus: int) -> Plan | None:
    """The layout of exactly `gpus` GPUs that needs least, fitting or not; None when there is no layout at all."""
    base = grid(question, np.asarray([gpus], dtype=np.int64)).layouts()
    found = ranked(question, base, space.variants(question, base, tightest(question), interleave=False))
    row = found.least_needed()
    return None if row is None else plan_of(question, found.layouts, row)


def holds(question: Question, gpus: int) -> bool:
    """Whether any layout of exactly `gpus` GPUs fits."""
    base = grid(question, np.asarray([gpus], dtype=np.int64)).layouts()
    return bool(fits(question, base, space.variants(question, base, tightest(question), interleave=True)).any())


def largest(question: Question) -> Plan | None:
    """The tightest layout of the largest count that can be laid out, for a run that no count holds."""
    every = grid(question, space.counts(question.gpu))
    usable = np.flatnonzero((every.dp > 0).any(axis=0))
    return closest(question, int(every.gpus[usable[-1]])) if len(usable) else None


def next_smaller(question: Question, gpus: int) -> Shortfall | None:
    """What the next smaller count lacks; None when there is none that can be laid out."""
    counts = space.counts(question.gpu)
    every = grid(question, counts[counts < gpus])
    usable = np.flatnonzero((every.dp > 0).any(axis=0))
    made = closest(question, int(every.gpus[usable[-1]])) if len(usable) else None
    if made is None:
        return None
    sizing = made.size()
    return None if sizing.fits else shortfall(made, sizing)


def shortfall(made: Plan, sizing: Sizing) -> Shortfall:
    """What overflows on a count that is too small."""
    peak = sizing.peak.line.at(sizing.peak.instant)
    term = max(TERMS[:-1], key=lambda name: int(peak.get(name, 0)))
    return Shortfall(made, made.gpus, -sizing.headroom_bytes, term)
