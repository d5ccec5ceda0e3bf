"""The best layout over every count, for those who ask for time or cost."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.engine.question import Question
from service.engine.search import space
from service.engine.search.bound import least_bytes
from service.engine.search.minimum import Grid, grid
from service.engine.search.ranking import UNKNOWN, Fit, Goal, Ranking, ranking, with_hybrids
from service.engine.search.table import Column, Table, stacked
from service.engine.size import usable_bytes
from service.engine.step_time import Floats, times

#: Families × counts that are looked at in one go, so that a search stays within a few tens of megabytes.
SLICE = 4_000
#: Counts, in multiples of the smallest, that are solved first: a good answer early leaves little to look at.
FIRST_GUESSES = (1, 2, 4)


class _Found(NamedTuple):
    """Layouts that would beat the best known, with their objective; whether they fit is still open."""

    layouts: Table
    least: Column
    objective: Floats


def best_of_all_counts(question: Question, smallest: int, goal: Goal) -> Fit | None:
    """The layout that takes the least time (or GPU time) for the same tokens, on any count from `smallest` on.

    Every layout of every count is timed; those that would beat a first guess are then sized in the order of what they
    promise, until one fits. None where the device's speed is not known.
    """
    gpus = space.counts(question.gpu)
    gpus = gpus[gpus >= smallest]
    best = _first_guess(question, smallest, goal)
    if best is None or best.ranking.seconds_per_token is None:
        return best
    value = _objective(np.asarray([best.seconds_per_token]), np.asarray([best.plan().gpus]), goal)[0]
    found = [part for part in _promising(question, grid(question, gpus), goal, float(value)) if len(part.objective)]
    if not found:
        return best
    order = np.argsort(np.concatenate([part.objective for part in found]), kind="stable")
    layouts = stacked([part.layouts for part in found]).take(order)
    timed = times(question, layouts)
    ranked = Ranking(
        question=question,
        layouts=layouts,
        least=np.concatenate([part.least for part in found])[order],
        needed=np.full(len(order), UNKNOWN, dtype=np.int64),
        seconds_per_token=timed.seconds_per_token if timed is not None else None,
    )
    row = ranked.first_fit()
    return best if row is None else Fit(ranked, row)


def _objective(seconds: Floats, gpus: Column, goal: Goal) -> Floats:
    return seconds * gpus if goal == "cost" else seconds


def _first_guess(question: Question, smallest: int, goal: Goal) -> Fit | None:
    """The best of a few counts (for time, the largest as well)."""
    largest = int(space.counts(question.gpu)[-1])
    wanted = [smallest * times_as_many for times_as_many in FIRST_GUESSES] + ([largest] if goal == "time" else [])
    fits = []
    for gpus in wanted:
        found = ranking(question, gpus)
        row = found.first_fit()
        if row is not None:
            fits.append(Fit(found, row))

    def value(fit: Fit) -> float:
        return fit.seconds_per_token * (fit.plan().gpus if goal == "cost" else 1)

    return min(fits, key=value, default=None)


def _promising(question: Question, every: Grid, goal: Goal, best: float) -> list[_Found]:
    """Layouts of all counts whose objective is below `best` and that the bound does not rule out."""
    rows, places = np.nonzero(every.dp)
    fastest = times(question, fastest_variants(question, every.at(rows, places)))
    if fastest is None:
        return []
    below = _objective(fastest.seconds_per_token, every.gpus[places], goal) < best
    rows, places = rows[below], places[below]
    usable = usable_bytes(question.gpu, question.margin)
    found = []
    for start in range(0, len(rows), SLICE):
        base = every.at(rows[start : start + SLICE], places[start : start + SLICE])
        tried = with_hybrids(question, space.variants(question, base, space.shards(question), interleave=True))
        timed = times(question, tried.layouts)
        if timed is None:
            return []
        objective = _objective(timed.seconds_per_token, tried.layouts.gpus, goal)
        better = objective < best
        tried, objective = tried.take(better), objective[better]
        least = least_bytes(question, base, tried)
        likely = least <= usable
        found.append(_Found(tried.layouts.take(likely), least[likely], objective[likely]))
    return found


def fastest_variants(question: Question, layouts: Table) -> Table:
    """Each layout with what takes least time whatever it needs: no recompute, least sharding, most interleaving."""
    degrees, where = np.unique(layouts.pp, return_inverse=True)
    chunks = [question.vpp or space.interleaving(question, int(pp)) for pp in degrees]
    level = space.shards(question)[0]
    alone = layouts.dp * layouts.cp == 1
    return replace(
        layouts,
        shard=np.where(alone, 0, level),
        vpp=np.asarray(chunks, dtype=np.int64)[where],
        recompute=np.zeros_like(layouts.tp),
    )
