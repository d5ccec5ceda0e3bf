"""The largest micro-batch or sequence that fits, and the best layout where none fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from service.engine.errors import FieldError, InvalidInput
from service.engine.question import Plan, Question
from service.engine.recommend import MOST_GPUS, best, counts, layouts
from service.engine.size import Sizing
from service.sizings.asking import Asked
from service.sizings.inputs import Input

#: Sequences are searched in steps of this many tokens.
SEQUENCE_STEP = 128
MOST_MICRO_BATCH = 4096
MOST_SEQUENCE_STEPS = 8 * 1024 * 1024 // SEQUENCE_STEP


def best_or_refuse(question: Question, gpus: int) -> tuple[Plan, Sizing]:
    """The best layout of exactly `gpus` GPUs; refused with the nearest counts that can be laid out."""
    found = best(question, gpus)
    if found is not None:
        return found
    by_distance = sorted(counts(question), key=lambda count: abs(count - gpus))
    near = [count for count in by_distance if any(layouts(question, count))]
    raise InvalidInput(
        [
            FieldError(
                "/gpus", f"no layout of {gpus} GPUs obeys the model's and the stack's divisibility rules", str(gpus),
                "a count that tp, pp, cp and global_batch can divide", tuple(str(count) for count in near[:2]),
            )
        ]
    )  # fmt: skip


def largest(question: Question) -> tuple[Plan, Sizing]:
    """The best layout of the largest count that can be laid out, for a run that no count holds."""
    for gpus in reversed([count for count in counts(question) if count <= MOST_GPUS and count & (count - 1) == 0]):
        found = best(question, gpus)
        if found is not None:
            return found
    return best_or_refuse(question, 1)


def solve(wanted: str, asked: Asked, inputs: dict[str, Input]) -> tuple[Asked, dict[str, Input]]:
    """Replace micro-batch or sequence by the largest that fits on the GPUs at hand."""
    unit = 1 if wanted == "micro_batch" else SEQUENCE_STEP
    most = MOST_MICRO_BATCH if wanted == "micro_batch" else MOST_SEQUENCE_STEPS
    count = _largest(lambda steps: _fits(_with(asked, wanted, steps * unit)), most)
    value = max(count, 1) * unit
    return _with(asked, wanted, value), inputs | {wanted: Input(value, "solved")}


def _with(asked: Asked, wanted: str, value: int) -> Asked:
    question = asked.question
    if wanted == "micro_batch":
        question = replace(question, micro_batch=value)
    else:
        question = replace(question, run=replace(question.run, sequence_length=value))
    if asked.plan is None:
        return replace(asked, question=question)
    if wanted == "micro_batch":
        run = replace(asked.plan.run, micro_batch=value)
    else:
        run = replace(asked.plan.run, sequence_length=value)
    return replace(asked, question=question, plan=replace(asked.plan, question=question, run=run))


def _fits(asked: Asked) -> bool:
    if asked.plan is not None:
        return asked.plan.size().fits
    found = best(asked.question, asked.gpus or 1)
    return found is not None and found[1].fits


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest count up to `most` that fits: doubling, then halving the gap; 0 when not even 1 does."""
    low, high = 0, 1
    while high <= most and fits(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
