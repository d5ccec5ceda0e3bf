"""The smallest number of GPUs that holds a run, the layout to run it with, and why fewer do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from service.engine.layout import Shard
from service.engine.ledger import TERMS
from service.engine.question import Plan, Question, plan, refusals
from service.engine.run import Recompute
from service.engine.size import Sizing, size_stage, usable_bytes
from service.engine.stage import Prepared

#: The search stops here: nobody has asked for more, and every layout repeats itself long before.
MOST_GPUS = 8192
RECOMPUTE_ORDER = {"none": 0, "selective": 1, "full": 2}


class Shortfall(NamedTuple):
    """Why a count is too small: its best layout, the bytes missing, and the term that weighs most there."""

    plan: Plan
    gpus: int
    missing_bytes: int
    term: str


class Recommendation(NamedTuple):
    """The answer, the smallest count that fits, why not fewer, and other ways to run it (best first)."""

    sizing: Sizing
    plan: Plan
    minimum_gpus: int
    shortfall: Shortfall | None
    alternatives: tuple[tuple[Plan, Sizing], ...]


def counts(question: Question) -> list[int]:
    """GPU counts worth asking about: powers of two inside a node, then whole nodes."""
    node = question.gpu.gpus_per_node
    inside = [1 << power for power in range(node.bit_length()) if 1 << power < node]
    return [*inside, *range(node, MOST_GPUS + 1, node)]


def layouts(question: Question, gpus: int) -> Iterator[Plan]:
    """Every layout of exactly `gpus` GPUs that the stack can run and the question leaves open."""
    for tp in _degrees(question, "tp", gpus):
        for pp in _degrees(question, "pp", gpus // tp):
            for cp in _degrees(question, "cp", gpus // (tp * pp)):
                dp, rest = divmod(gpus, tp * pp * cp)
                if rest or question.dp not in (None, dp):
                    continue
                yield from _finished(question, tp, pp, cp, dp)


def _degrees(question: Question, name: str, room: int) -> Iterator[int]:
    fixed = getattr(question, name)
    if fixed is not None:
        if room % fixed == 0:
            yield fixed
        return
    if name not in question.stack.degrees:
        yield 1
        return
    most = {"tp": question.gpu.gpus_per_node, "pp": 16, "cp": 8, "ep": 64}[name]
    for power in range(most.bit_length()):
        degree = 1 << power
        if degree <= most and room % degree == 0:
            yield degree


def _finished(question: Question, tp: int, pp: int, cp: int, dp: int) -> Iterator[Plan]:
    for ep in _degrees(question, "ep", dp * cp) if question.architecture.moe else (question.ep or 1,):
        for shard in _shards(question, pp):
            for recompute in _recomputes(question):
                for micro_batch in (question.micro_batch,) if question.micro_batch else (1, 2, 4, 8):
                    if question.global_batch is not None and question.global_batch % (dp * micro_batch):
                        continue
                    made = plan(
                        question, tp=tp, pp=pp, cp=cp, ep=ep, dp=dp, shard=shard, recompute=recompute,
                        micro_batch=micro_batch,
                    )  # fmt: skip
                    if not any(refusals(question, made.layout)):
                        yield made


def _shards(question: Question, pp: int) -> tuple[Shard, ...]:
    if question.shard is not None:
        return (question.shard,)
    if question.stack.name == "deepspeed" and pp > 1:
        return ("optimizer",)
    return (question.stack.shards[-1],)


def _recomputes(question: Question) -> tuple[Recompute, ...]:
    if question.recompute is not None:
        return (question.recompute,)
    return tuple(Recompute(kind=kind) for kind in question.stack.recomputes)  # type: ignore[arg-type]


def needed(prepared: Prepared) -> int:
    """Bytes that the fullest of the stages that can be fullest needs: the first two and the last."""
    last = int(prepared.layout.pp) - 1
    return max(size_stage(prepared, index).needed_bytes for index in sorted({0, min(1, last), last}))


def _preference(made: Plan, needed_bytes: int) -> tuple[int, int, int]:
    """Least recompute, then most headroom, then the smaller tensor degree."""
    return (RECOMPUTE_ORDER[made.run.recompute.kind], needed_bytes, int(made.layout.tp))


def ranked(question: Question, gpus: int) -> list[tuple[int, Plan]]:
    """(needed bytes, plan) of every layout of `gpus` GPUs, best first; those that do not fit come last by bytes."""
    usable = usable_bytes(question.gpu, question.margin)
    sized = [(needed(made.prepared()), made) for made in layouts(question, gpus)]
    fitting = sorted((pair for pair in sized if pair[0] <= usable), key=lambda pair: _preference(pair[1], pair[0]))
    rest = sorted((pair for pair in sized if pair[0] > usable), key=lambda pair: pair[0])
    return fitting + rest


def best(question: Question, gpus: int) -> tuple[Plan, Sizing] | None:
    """The best layout of exactly `gpus` GPUs, fitting or not; None when no layout of that count exists."""
    usable = usable_bytes(question.gpu, question.margin)
    first: tuple[Plan, Sizing] | None = None
    for bytes_needed, made in ranked(question, gpus):
        if first is not None and bytes_needed > usable:
            break
        sizing = made.size()
        first = first or (made, sizing)
        if sizing.fits:
            return made, sizing
    return first


def recommend(question: Question) -> Recommendation | None:
    """Find the smallest count that fits; None when no count up to `MOST_GPUS` does."""
    tried: dict[int, tuple[Plan, Sizing] | None] = {}

    def fits(gpus: int) -> bool:
        if gpus not in tried:
            tried[gpus] = best(question, gpus)
        found = tried[gpus]
        return found is not None and found[1].fits

    candidates = counts(question)
    index = _first_fit(candidates, fits)
    if index is None:
        return None
    gpus = candidates[index]
    chosen = tried[gpus]
    assert chosen is not None
    before = next((tried[count] for count in reversed(candidates[:index]) if tried.get(count)), None)
    return Recommendation(
        sizing=chosen[1],
        plan=chosen[0],
        minimum_gpus=gpus,
        shortfall=shortfall(*before) if before else None,
        alternatives=tuple(alternatives(question, candidates, index)),
    )


def _first_fit(candidates: list[int], fits: Callable[[int], bool]) -> int | None:
    """Index of the first count that fits: steps that double, then halves of the last gap."""
    low, high, step = -1, 0, 1
    while not fits(candidates[high]):
        low = high
        if high == len(candidates) - 1:
            return None
        high = min(high + step, len(candidates) - 1)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if fits(candidates[middle]):
            high = middle
        else:
            low = middle
    return high


def shortfall(made: Plan, sizing: Sizing) -> Shortfall:
    """What overflows on a count that is too small."""
    peak = sizing.peak.line.at(sizing.peak.instant)
    term = max(TERMS[:-1], key=lambda name: int(peak.get(name, 0)))
    return Shortfall(made, made.gpus, -sizing.headroom_bytes, term)


def alternatives(question: Question, candidates: list[int], index: int, most: int = 5) -> Iterator[tuple[Plan, Sizing]]:
    """Up to `most` really different ways: other recompute or layout at the same count, then twice the count."""
    found, seen = 0, set()
    for gpus in (candidates[index], candidates[index] * 2):
        if gpus > MOST_GPUS:
            continue
        for bytes_needed, made in ranked(question, gpus):
            if found == most or bytes_needed > usable_bytes(question.gpu, question.margin):
                break
            trait = (gpus, made.run.recompute.kind, made.layout.tp == 1, made.layout.pp == 1)
            if trait in seen:
                continue
            seen.add(trait)
            if len(seen) == 1:
                continue  # the recommended one itself
            found += 1
            yield made, made.size()
