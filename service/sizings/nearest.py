"""What does fit, when what was asked does not: the nearest layout of the same run, or the run one change away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from service.engine.hardware import Gpu
from service.engine.question import Plan, Question
from service.engine.recommend import Recommendation, recommend
from service.engine.search.minimum import fits_anywhere, minimum
from service.engine.search.ranking import Fit, Ranking, ranking
from service.engine.search.space import recomputes
from service.requests.request import SizingRequest
from service.sizings.solving import SEQUENCE_STEP, largest_that


class NearestRun(NamedTuple):
    """One change to the request, and the plan that it makes possible."""

    change: dict[str, Any]
    plan: Plan


def nearest_layout(request: SizingRequest, given: Plan) -> Recommendation | None:
    """The layout that fits with the fewest changes to the given one: same model, sequence and micro-batch.

    On as many GPUs if they can hold it, else on the smallest count that does. What the request says of `shard` and
    `recompute` binds as long as anything fits under it.
    """
    for question in freed(request, given.question):
        smallest = minimum(question)
        for gpus in dict.fromkeys((given.gpus, smallest)):
            found = None if gpus is None else _least_changed(ranking(question, gpus), given)
            if found is not None:
                return Recommendation(found.plan(), smallest, found)
    return None


def freed(request: SizingRequest, question: Question) -> Iterable[Question]:
    """The question with its degrees open; then with sharding and recomputation open as well."""
    free = replace(
        question, tp=None, pp=None, cp=None, ep=None, dp=None, etp=None, vpp=None, stage_layers=None,
        shard_degree=None, stage=None,
        shard=question.shard if request.shard is not None else None,
        recompute=question.recompute if request.recompute is not None else None,
    )  # fmt: skip
    yield free
    open_to_all = replace(free, shard=None, recompute=None)
    if open_to_all != free:
        yield open_to_all


def _least_changed(found: Ranking, given: Plan) -> Fit | None:
    """The first fit when layouts are ordered by how many keys they change, then by time."""
    layouts, layout = found.layouts, given.layout
    policies = [policy == given.run.recompute for policy in recomputes(found.question)]
    changes = (~np.asarray(policies))[layouts.recompute].astype(np.int64)
    for name in ("tp", "pp", "cp", "ep"):
        changes = changes + (getattr(layouts, name) != int(getattr(layout, name)))
    reordered = found.reordered(np.argsort(changes, kind="stable"))
    row = reordered.first_fit()
    return None if row is None else Fit(reordered, row)


def nearest_run(question: Question, gpus: Callable[[], Iterable[Gpu]]) -> NearestRun | None:
    """One change that lets some count hold the run: a shorter sequence, a smaller micro-batch, another GPU.

    Tried in this order; the longest sequence in sixteenths of the power-of-two part that fits, the largest
    micro-batch, the GPU with the least memory. None when no single change is enough.
    """
    for change, changed in _changes(question, gpus):
        found = recommend(changed)
        if found is not None:
            return NearestRun(change, found.plan)
    return None


def _changes(question: Question, gpus: Callable[[], Iterable[Gpu]]) -> Iterable[tuple[dict[str, Any], Question]]:
    length = _shorter(question)
    if length is not None:
        yield {"sequence_length": length}, _with_sequence(question, length)
    if question.micro_batch is not None and question.micro_batch > 1:
        size = largest_that(lambda size: fits_anywhere(replace(question, micro_batch=size)), question.micro_batch - 1)
        if size:
            yield {"micro_batch": size}, replace(question, micro_batch=size)
    for gpu in sorted(gpus(), key=lambda gpu: gpu.memory_bytes):
        changed = replace(question, gpu=gpu)
        if gpu.memory_bytes > question.gpu.memory_bytes and gpu.has_bf16 and fits_anywhere(changed):
            yield {"gpu": gpu.id}, changed
            return


def _shorter(question: Question) -> int | None:
    """The longest shorter sequence that fits, to a sixteenth."""
    length = question.run.sequence_length
    while length > SEQUENCE_STEP:
        whole, length = length, max(length // 2 // SEQUENCE_STEP, 1) * SEQUENCE_STEP
        if fits_anywhere(_with_sequence(question, length)):
            step = max(length // 16 // SEQUENCE_STEP, 1) * SEQUENCE_STEP
            most = max((whole - 1 - length) // step, 0)
            added = largest_that(lambda steps: fits_anywhere(_with_sequence(question, length + steps * step)), most)  # noqa: B023
            return length + added * step
    return None


def _with_sequence(question: Question, length: int) -> Question:
    return replace(question, run=replace(question.run, sequence_length=length))
