"""The best layout of one count: fastest first, memory looked at only until one fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from service.engine.layout import SHARD_LEVEL
from service.engine.question import Plan, Question
from service.engine.search import space
from service.engine.search.bound import least_bytes
from service.engine.search.evaluate import needed_bytes
from service.engine.search.minimum import grid, tightest
from service.engine.search.plans import plan_of
from service.engine.search.space import Variants
from service.engine.search.table import WHOLE, Column, Mask, Table, stacked
from service.engine.size import usable_bytes
from service.engine.step_time import Floats, times

Goal = Literal["gpus", "time", "cost"]

#: Layouts whose memory is looked at in one go; the next batch is this many times larger.
FIRST_BATCH, GROWTH = 24, 3
UNKNOWN = -1


@dataclass(slots=True)
class Ranking:
    """Layouts in the order in which they are preferred, and what is known about their memory.

    `needed` is filled in as far as it was asked for (`UNKNOWN` elsewhere). `seconds_per_token` is None where the
    device's speed is not known: then the least recompute leads, then the most headroom.
    """

    question: Question
    layouts: Table
    least: Column
    needed: Column
    seconds_per_token: Floats | None

    @property
    def usable(self) -> int:
        return usable_bytes(self.question.gpu, self.question.margin)

    def measure(self, rows: Column) -> None:
        """Fill in what `rows` need."""
        missing = rows[self.needed[rows] == UNKNOWN]
        if len(missing):
            self.needed[missing] = needed_bytes(self.question, self.layouts.take(missing))

    def likely(self) -> Column:
        """Rows that the bound does not rule out, in order."""
        return np.flatnonzero(self.least <= self.usable)

    def fitting(self) -> Column:
        """Rows known to fit, in order."""
        known: Mask = (self.needed != UNKNOWN) & (self.needed <= self.usable)
        return np.flatnonzero(known)

    def reordered(self, order: Column) -> Ranking:
        """The same layouts in another order."""
        seconds = self.seconds_per_token
        return Ranking(
            question=self.question,
            layouts=self.layouts.take(order),
            least=self.least[order],
            needed=self.needed[order],
            seconds_per_token=None if seconds is None else seconds[order],
        )

    def batches(self) -> Iterator[Column]:
        """Likely rows, a few at first; all at once when memory itself decides the order."""
        rows, size = self.likely(), FIRST_BATCH
        if self.seconds_per_token is None:
            size = max(len(rows), 1)
        while len(rows):
            yield rows[:size]
            rows, size = rows[size:], size * GROWTH

    def first_fit(self) -> int | None:
        """The preferred row that fits."""
        for rows in self.batches():
            self.measure(rows)
            fits = rows[self.needed[rows] <= self.usable]
            if len(fits):
                return int(fits[0]) if self.seconds_per_token is not None else self._roomiest(fits)
        return None

    def _roomiest(self, fits: Column) -> int:
        order = np.lexsort((self.layouts.tp[fits], self.needed[fits], self.layouts.recompute[fits]))
        return int(fits[order[0]])

    def least_needed(self) -> int | None:
        """The row that needs least, whether or not it fits; None when there is no layout at all."""
        if not len(self.layouts):
            return None
        levels = np.asarray([0, *tightest(self.question)])
        rows = np.flatnonzero(np.isin(self.layouts.shard, levels) & (self.layouts.vpp <= (self.question.vpp or 1)))
        self.measure(rows)
        return int(rows[np.argmin(self.needed[rows])])


class Fit(NamedTuple):
    """One layout of a ranking that fits."""

    ranking: Ranking
    row: int

    @property
    def needed_bytes(self) -> int:
        return int(self.ranking.needed[self.row])

    @property
    def seconds_per_token(self) -> float:
        """0 where the device's speed is not known."""
        seconds = self.ranking.seconds_per_token
        return 0.0 if seconds is None else float(seconds[self.row])

    def plan(self) -> Plan:
        return plan_of(self.ranking.question, self.ranking.layouts, self.row)


def ranking(question: Question, gpus: int) -> Ranking:
    """Every layout of exactly `gpus` GPUs in its order."""
    base = grid(question, np.asarray([gpus], dtype=np.int64)).layouts()
    tried = space.variants(question, base, space.shards(question), interleave=True)
    return ranked(question, base, with_hybrids(question, tried))


def ranked(question: Question, base: Table, variants: Variants) -> Ranking:
    """Variants of `base` sorted by seconds per token, then least recompute, then the smaller tensor degree."""
    layouts = variants.layouts
    timed = times(question, layouts)
    seconds = timed.seconds_per_token if timed else None
    keys = [layouts.vpp, layouts.pp, layouts.tp, layouts.recompute, *([seconds] if seconds is not None else [])]
    order = np.lexsort(keys)
    chosen = layouts.take(order)
    return Ranking(
        question=question,
        layouts=chosen,
        least=least_bytes(question, base, Variants(chosen, variants.of[order])),
        needed=np.full(len(order), UNKNOWN, dtype=np.int64),
        seconds_per_token=seconds[order] if seconds is not None else None,
    )


def with_hybrids(question: Question, variants: Variants) -> Variants:
    """The layouts, and those that gather parameters across nodes once more gathering inside a node only (HSDP)."""
    node = question.gpu.gpus_per_node
    if question.shard_degree is not None or question.stack.name in ("megatron", "deepspeed"):
        return variants
    layouts = variants.layouts
    inside = np.maximum(node // (layouts.tp * layouts.cp), 1) * layouts.cp
    ranks = layouts.dp * layouts.cp
    useful = (layouts.shard == SHARD_LEVEL["parameters"]) & (inside > 1) & (inside < ranks) & (ranks % inside == 0)
    hybrid = replace(layouts, shard_degree=np.where(useful, inside, WHOLE)).take(useful)
    return Variants(stacked([layouts, hybrid]), np.concatenate([variants.of, variants.of[useful]]))
