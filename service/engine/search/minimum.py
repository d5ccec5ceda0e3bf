"""The smallest count of GPUs on which any layout of a question fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.engine.architecture import layer_kinds
from service.engine.question import Question
from service.engine.search import space
from service.engine.search.bound import least_bytes, least_gpus
from service.engine.search.evaluate import needed_bytes
from service.engine.search.space import Variants
from service.engine.search.table import Column, Mask, Table, stacked
from service.engine.size import usable_bytes

#: Counts are tried this many times as large as the last that did not fit.
RUNG = 2
#: Counts between two bounds that are sized in one go.
MOST_BETWEEN = 5


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

    As dp grows memory only falls, so a variant fits somewhere up to a count exactly if it fits on the largest count up
    to there that its family can use. Rungs double until something fits; the gap is then narrowed.
    """
    search = _Search(question)
    gpus = search.grid.gpus
    below = int(np.searchsorted(gpus, least_gpus(question))) - 1
    while below < len(gpus) - 1:
        next_rung = int(gpus[below]) * RUNG if below >= 0 else int(gpus[0])
        place = max(int(np.searchsorted(gpus, next_rung, side="right")) - 1, below + 1)
        hits = search.fitting(np.arange(len(search.every.of)), below, [place])[0]
        if len(hits):
            return int(gpus[search.narrowed(hits, below, place)])
        below = place
    return None


class _Search:
    """All variants of all families, and which of them fit on which counts."""

    def __init__(self, question: Question) -> None:
        if question.micro_batch is None and question.global_batch is None:
            # the same number of smaller micro-batches never needs more
            question = replace(question, micro_batch=space.MICRO_BATCHES[0])
        self.question = question
        self.grid = grid(question, space.counts(question.gpu))
        # more chunks a stage hold more micro-batches; only layers that differ can be dealt out better by them
        mixed = len(layer_kinds(question.architecture)) > 1
        self.every = space.crossed(question, self.grid.families, tightest(question), interleave=mixed)

    def fitting(self, rows: Column, below: int, places: Sequence[int]) -> list[Column]:
        """For each of `places`, which of the variants `rows` fit on the largest count in (below, place] that their
        family can use. All places are sized together."""
        parts = [self._laid_out(rows, below, place) for place in places]
        base = stacked([part.base for part in parts])
        offsets = np.cumsum([0, *(len(part.base) for part in parts)])
        of = np.concatenate([part.variants.of + offset for part, offset in zip(parts, offsets, strict=False)])
        layouts = stacked([part.variants.layouts for part in parts])
        found = fits(self.question, base, Variants(layouts, of))
        ends = np.cumsum([len(part.rows) for part in parts])
        chosen = np.split(found, ends[:-1])
        return [part.rows[fit] for part, fit in zip(parts, chosen, strict=True)]

    def _laid_out(self, rows: Column, below: int, place: int) -> _LaidOut:
        places = self.grid.largest_up_to(place)
        rows = rows[places[self.every.of[rows]] > below]
        used, of = np.unique(self.every.of[rows], return_inverse=True)
        base = self.grid.at(used, places[used])
        layouts = replace(self.every.layouts.take(rows), dp=base.dp[of])
        return _LaidOut(rows, base, Variants(space.unsharded_alone(layouts), of))

    def narrowed(self, hits: Column, below: int, place: int) -> int:
        """The first position in (below, place] on which one of the variants `hits` fits; one does on `place`."""
        while place - below > 1:
            between = min(place - below - 1, MOST_BETWEEN)
            middles = sorted(
                {below + 1 + (place - below - 1) * step // (between + 1) for step in range(1, between + 1)}
            )
            closer = self.fitting(hits, below, middles)
            first = next((index for index, found in enumerate(closer) if len(found)), len(middles))
            if first < len(middles):
                hits, place = closer[first], middles[first]
            below = middles[first - 1] if first else below
        return place


class _LaidOut(NamedTuple):
    """Variants `rows` on one count: the layouts of their families, and the variants themselves."""

    rows: Column
    base: Table
    variants: Variants


def fits(question: Question, base: Table, variants: Variants) -> Mask:
    """Which variants of `base` fit into the usable memory of the question's GPU."""
    usable = usable_bytes(question.gpu, question.margin)
    chosen: Mask = least_bytes(question, base, variants) <= usable
    likely = np.flatnonzero(chosen)
    chosen[likely] = needed_bytes(question, variants.layouts.take(likely)) <= usable
    return chosen


def fits_anywhere(question: Question) -> bool:
    """Whether any count holds the run: as dp grows memory only falls, so the largest count of every family tells."""
    search = _Search(question)
    everything = np.arange(len(search.every.of), dtype=np.int64)
    return len(search.fitting(everything, -1, [len(search.grid.gpus) - 1])[0]) > 0
