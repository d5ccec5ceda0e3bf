"""The largest micro-batch or sequence that fits, and the layout that comes closest where none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from service.engine.errors import FieldError, InvalidInput
from service.engine.layout import Layout
from service.engine.question import Plan, Question, refusals
from service.engine.recommend import closest, holds, largest
from service.engine.search import space
from service.engine.search.minimum import grid
from service.sizings.asking import Asked
from service.sizings.inputs import Input

#: Sequences are searched in steps of this many tokens.
SEQUENCE_STEP = 128
MOST_MICRO_BATCH = 4096
MOST_SEQUENCE = 8 * 1024 * 1024


def closest_or_refuse(question: Question, gpus: int | None) -> Plan:
    """The layout that needs least on `gpus` GPUs (on the largest count, without), fitting or not.

    Raises InvalidInput with the nearest counts where this one cannot be laid out at all.
    """
    found = largest(question) if gpus is None else closest(question, gpus)
    if found is not None:
        return found
    raise InvalidInput([_impossible_count(question, gpus)])


def refuse_impossible(question: Question) -> None:
    """Raise InvalidInput where a degree that the request fixes is impossible by itself, whatever else is chosen."""
    errors = _impossible_degrees(question)
    if errors:
        raise InvalidInput(errors)


def _impossible_degrees(question: Question) -> list[FieldError]:
    """What is wrong with the degrees that the request fixes, each by itself."""
    ep = question.ep or 1
    alone = Layout(
        tp=question.tp or 1, pp=question.pp or 1, cp=question.cp or 1, ep=ep, dp=ep, etp=question.etp or 1,
        vpp=question.vpp or 1, shard=question.shard or question.stack.shards[0], stage_layers=question.stage_layers,
    )  # fmt: skip
    return list(refusals(question, alone))


def _impossible_count(question: Question, gpus: int | None) -> FieldError:
    every = grid(question, space.counts(question.gpu))
    possible = every.gpus[(every.dp > 0).any(axis=0)].tolist()
    near = sorted(possible, key=lambda count: abs(count - (gpus or 1)))[:2]
    rule = "a count that tp, pp, cp and global_batch can divide"
    detail = (
        f"no layout of {gpus or 'any number of'} GPUs obeys the divisibility rules of model, stack and global_batch"
    )
    return FieldError("/gpus", detail, str(gpus), rule, tuple(str(count) for count in near))


def solve(wanted: str, asked: Asked, inputs: dict[str, Input]) -> tuple[Asked, dict[str, Input]]:
    """Replace micro-batch or sequence by the largest that fits on the GPUs at hand."""
    values = _values(wanted, asked)
    count = largest_that(lambda place: _fits(_with(asked, wanted, values[place - 1])), len(values))
    value = values[max(count, 1) - 1]
    return _with(asked, wanted, value), inputs | {wanted: Input(value, "solved")}


def _values(wanted: str, asked: Asked) -> Sequence[int]:
    """What may be solved for, ascending: micro-batches that `global_batch` can divide, sequences of whole slices."""
    question = asked.question
    if wanted == "micro_batch":
        whole = question.global_batch
        if whole is None:
            return range(1, MOST_MICRO_BATCH + 1)
        share = whole // int(asked.plan.layout.dp) if asked.plan is not None else whole
        return [size for size in range(1, min(share, MOST_MICRO_BATCH) + 1) if share % size == 0]
    architecture = question.architecture
    most = architecture.max_positions if architecture.position == "learned" else MOST_SEQUENCE
    return range(SEQUENCE_STEP, most + 1, SEQUENCE_STEP) or range(most, most + 1)


def _with(asked: Asked, wanted: str, value: int) -> Asked:
    question = asked.question
    if wanted == "micro_batch":
        question = replace(question, micro_batch=value)
    else:
        question = replace(question, run=replace(question.run, sequence_length=value))
    if asked.plan is None:
        return replace(asked, question=question)
    key = "micro_batch" if wanted == "micro_batch" else "sequence_length"
    run = replace(asked.plan.run, **{key: value})  # type: ignore[arg-type]
    return replace(asked, question=question, plan=replace(asked.plan, question=question, run=run))


def _fits(asked: Asked) -> bool:
    if asked.plan is not None:
        return asked.plan.size().fits
    return holds(asked.question, asked.gpus or 1)


def largest_that(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits: doubling, then halving the gap; 0 when not even 1 does."""
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
