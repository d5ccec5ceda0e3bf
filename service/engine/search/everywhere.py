"""The best layout over every count, for those who ask for time or cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.engine.question import Question
from service.engine.search import space
from service.engine.search.minimum import grid
from service.engine.search.ranking import Fit, Goal, ranking
from service.engine.search.table import Column, Table
from service.engine.step_time import Floats, times

#: Families × counts that are timed in one go: 11 columns of 8 bytes and as many floats stay within 50 MB.
SLICE = 200_000


def best_of_all_counts(question: Question, smallest: int, goal: Goal) -> Fit | None:
    """The plan that takes the least time (or GPU time) for the same tokens, on any count from `smallest` on.

    Counts are visited in the order of the best they could do if everything fitted (nothing recomputed, nothing
    sharded); the search ends when no count left can beat what was found. None where the device's speed is not known.
    """
    gpus = space.counts(question.gpu)
    gpus = gpus[gpus >= smallest]
    possible = best_possible(question, gpus, goal)
    if possible is None:
        return None
    best, chosen = np.inf, None
    for place in np.argsort(possible, kind="stable"):
        if possible[place] >= best:
            break
        found = ranking(question, int(gpus[place]))
        row = found.first_fit()
        if row is None or found.seconds_per_token is None:
            continue
        value = _objective(float(found.seconds_per_token[row]), int(gpus[place]), goal)
        if value < best:
            best, chosen = value, Fit(found, row)
    return chosen


def _objective(seconds: float, gpus: int, goal: Goal) -> float:
    return seconds * gpus if goal == "cost" else seconds


def best_possible(question: Question, gpus: Column, goal: Goal) -> Floats | None:
    """Per count, a bound from below on the objective: the fastest variant of every layout, fitting or not."""
    every = grid(question, gpus)
    rows, places = np.nonzero(every.dp)
    result: Floats = np.full(len(gpus), np.inf)
    for start in range(0, len(rows), SLICE):
        part = slice(start, start + SLICE)
        timed = times(question, fastest_variants(question, every.at(rows[part], places[part])))
        if timed is None:
            return None
        np.minimum.at(result, np.tile(places[part], len(timed.step_s) // len(places[part])), timed.seconds_per_token)
    return result * gpus if goal == "cost" else result


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
