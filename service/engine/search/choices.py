"""Other ways to run it: few, really different, and none that the recommended one beats in everything."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.engine.question import Plan, Question
from service.engine.search import space
from service.engine.search.ranking import Fit, Ranking, ranking

MOST_CHOICES = 5
#: A slower layout of the same count must leave this much more room to be worth a thought.
WORTH_BYTES = 2 << 30


class Choice(NamedTuple):
    """Another plan that fits, and what it changes against the recommended one."""

    plan: Plan
    lever: str


def alternatives(chosen: Fit, smallest: int | None) -> list[Choice]:
    """Alternatives to a fit: roomier layouts of its own count, then the best of the smallest, of twice and of four
    times the count. Each is kept only if nothing before it is as good in GPUs, time and memory alike."""
    question = chosen.ranking.question
    found = [*_roomier(chosen.ranking)]
    for gpus in _other_counts(question, chosen.plan().gpus, smallest):
        there = ranking(question, gpus)
        row = there.first_fit()
        if row is not None:
            found.append(Fit(there, row))
    kept = [chosen]
    for one in found:
        if not any(_beats(other, one) for other in kept):
            kept.append(one)
    base = chosen.plan()
    return [Choice(made, difference(base, made)) for made in (one.plan() for one in kept[1 : MOST_CHOICES + 1])]


def _other_counts(question: Question, gpus: int, smallest: int | None) -> list[int]:
    """The smallest count, and twice and four times the chosen one, as far as they are counts at all."""
    possible = set(space.counts(question.gpu).tolist())
    wanted = (smallest or gpus, gpus * 2, gpus * 4)
    return [count for count in dict.fromkeys(wanted) if count != gpus and count in possible]


def _roomier(found: Ranking) -> list[Fit]:
    """Layouts of the same count with more room: the one with most, and the one with the fewest kinds of parallelism.

    Looked for where room is: with all sharded and recomputed that may be.
    """
    layouts = found.layouts
    tight = (layouts.shard == layouts.shard.max()) & (layouts.recompute == layouts.recompute.max())
    found.measure(found.likely()[tight[found.likely()]])
    rows = found.fitting()
    kinds = sum((degree > 1).astype(np.int64) for degree in (layouts.tp, layouts.pp, layouts.cp, layouts.ep))
    simplest = rows[np.lexsort((found.needed[rows], np.asarray(kinds)[rows]))[:1]]
    roomiest = rows[np.argsort(found.needed[rows], kind="stable")[:1]]
    return [Fit(found, int(row)) for row in dict.fromkeys([*simplest, *roomiest])]


def _beats(one: Fit, other: Fit) -> bool:
    """Whether `one` is no worse than `other` in GPUs and time, and leaves as much room up to what matters."""
    fewer = one.ranking.layouts.gpus[one.row] <= other.ranking.layouts.gpus[other.row]
    faster = one.seconds_per_token <= other.seconds_per_token
    return bool(fewer) and faster and one.needed_bytes <= other.needed_bytes + WORTH_BYTES


def difference(base: Plan, other: Plan) -> str:
    """What `other` changes against `base`, the most telling first: "gpus 16 → 32, tp 8 → 4"."""
    changes = []
    if other.gpus != base.gpus:
        changes.append(f"gpus {base.gpus} → {other.gpus}")
    if other.run.recompute != base.run.recompute:
        changes.append(f"recompute {base.run.recompute.text} → {other.run.recompute.text}")
    for name in ("tp", "pp", "cp", "ep", "etp", "vpp"):
        before, after = int(getattr(base.layout, name)), int(getattr(other.layout, name))
        if before != after:
            changes.append(f"{name} {before} → {after}")
    if other.layout.shard != base.layout.shard:
        changes.append(f"shard {base.layout.shard} → {other.layout.shard}")
    elif other.layout.shard_degree != base.layout.shard_degree:
        changes.append(f"shard_degree → {int(other.layout.shard_ranks(other.layout.shard))}")
    if int(other.run.micro_batch) != int(base.run.micro_batch):
        changes.append(f"micro_batch {int(base.run.micro_batch)} → {int(other.run.micro_batch)}")
    return ", ".join(changes[:4])
