"""The smallest count of GPUs on which any layout of a question fits."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.engine.architecture import layer_kinds
from service.engine.question import Question
from service.engine.search import space
from service.engine.search.bound import least_bytes
from service.engine.search.evaluate import needed_bytes
from service.engine.search.table import Column, Mask, Table
from service.engine.size import usable_bytes

#: Counts are tried this many times as large as the last that did not fit.
RUNG = 2


class Grid(NamedTuple):
    """Families against counts. `dp[f, c]` is 0 where family f cannot use count c."""

    families: Table
    gpus: Column
    dp: Column

    def largest_up_to(self, place: int) -> Column:
        """Per family, the last count it can use up to position `place`; -1 for none."""
        places: Column = np.where(self.dp[:, : place + 1] > 0, np.arange(place + 1), -1).max(axis=1)
        return places

    def at(self, rows: Column, places: Column) -> Table:
        """The families `rows` on the counts `places`."""
        return replace(self.families.take(rows), dp=self.dp[rows, places])

    def layouts(self) -> Table:
        """Every family on every count it can use."""
        rows, places = np.nonzero(self.dp)
        return self.at(rows, places)


def grid(question: Question, gpus: Column) -> Grid:
    """Every family of a question against counts."""
    families = space.families(question)
    return Grid(families, gpus, space.replicas(question, families, gpus))


def tightest(question: Question) -> tuple[int, ...]:
    """The levels of sharding that can need least: what shards more gathers more, so the last two compete."""
    return space.shards(question)[-2:]


def minimum(question: Question) -> int | None:
    """The smallest count that fits, of `space.counts`; None when none does.

    Within a family memory only falls as dp grows, so a family fits somewhere up to a count exactly if it fits on the
    largest count up to there that it can use. Rungs double until something fits; the gap is then halved.
    """
    found = grid(question, space.counts(question.gpu))
    gpus, below = found.gpus, -1
    while below < len(gpus) - 1:
        next_rung = int(gpus[below]) * RUNG if below >= 0 else int(gpus[0])
        place = max(int(np.searchsorted(gpus, next_rung, side="right")) - 1, below + 1)
        hits = _fitting(question, found, np.arange(len(found.families)), place, below)
        if len(hits):
            return int(gpus[_narrow(question, found, hits, below, place)])
        below = place
    return None


def _narrow(question: Question, found: Grid, hits: Column, below: int, place: int) -> int:
    """The first position in (below, place] on which one of the families `hits` fits; one does on `place`."""
    while place - below > 1:
        middle = (below + place) // 2
        closer = _fitting(question, found, hits, middle, below)
        if len(closer):
            hits, place = closer, middle
        else:
            below = middle
    return place


def _fitting(question: Question, found: Grid, rows: Column, place: int, below: int) -> Column:
    """Which of the families `rows` fit, in any variant, on their largest count in (below, place]."""
    places = found.largest_up_to(place)[rows]
    usable = places > below
    rows, places = rows[usable], places[usable]
    # more chunks a stage hold more micro-batches; only layers that differ can be dealt out better by them
    mixed = len(layer_kinds(question.architecture)) > 1
    tried = space.variants(question, found.at(rows, places), tightest(question), interleave=mixed)
    return rows[np.unique(tried.of[fits(question, tried.layouts)])]


def fits(question: Question, layouts: Table) -> Mask:
    """Which layouts fit into the usable memory of the question's GPU."""
    usable = usable_bytes(question.gpu, question.margin)
    chosen: Mask = least_bytes(question, layouts) <= usable
    likely = np.flatnonzero(chosen)
    chosen[likely] = needed_bytes(question, layouts.take(likely)) <= usable
    return chosen
