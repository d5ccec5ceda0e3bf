"""A bound from below on what a layout needs, from the engine's own rows, cheap enough to skip most of the space.

Weights, masters and moments (and gradients, where they persist) live through the whole step, and at the end of forward
every stage holds the micro-batches in flight on it. The fullest stage holds no less than the mean over the stages.
Offloading takes rows away: with it there is no bound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.engine.elementwise import Int, minimum
from service.engine.layout import Layout
from service.engine.ledger import total_bytes
from service.engine.question import Question, micro_batches
from service.engine.saved_tensors import layer
from service.engine.search.evaluate import beyond_64_bits, prepare
from service.engine.search.space import Variants
from service.engine.search.table import WHOLE, Column, Table
from service.engine.size import usable_bytes
from service.engine.stacks import recipe
from service.engine.stage import Prepared
from service.engine.state import StateRows


def least_bytes(question: Question, base: Table, variants: Variants) -> Column:
    """Bytes that the fullest GPU of each variant holds at the very least; `base` are the layouts they came from."""
    layouts, of = variants
    least = np.zeros(len(layouts), dtype=np.int64)
    if not _bounded(question) or beyond_64_bits(question, layouts):
        return least
    hybrid = layouts.shard_degree != WHOLE
    for level in np.unique(layouts.shard):
        rows = np.flatnonzero(layouts.shard == level)
        _, first, places = np.unique(of[rows] * 2 + hybrid[rows], return_index=True, return_inverse=True)
        least[rows] += _filled(_state(prepare(question, layouts.take(rows[first]))), len(first))[places]
    for policy in np.unique(layouts.recompute):
        rows = np.flatnonzero(layouts.recompute == policy)
        used, places = np.unique(of[rows], return_inverse=True)
        least[rows] += _saved_of(question, base.take(used), int(policy))[places]
    bound: Column = least // layouts.pp
    return bound


def _bounded(question: Question) -> bool:
    paged = question.recipe.optimizer.startswith("paged")
    return not question.run.offload and question.stage_layers is None and not paged


def _filled(value: Int, length: int) -> Column:
    return np.broadcast_to(np.asarray(value, dtype=np.int64), (length,))


def _saved_of(question: Question, base: Table, policy: int) -> Column:
    """What each layout saves under one policy, all stages together."""
    found = np.zeros(len(base), dtype=np.int64)
    marked = replace(base, recompute=np.full_like(base.tp, policy))
    found[:] = _saved(prepare(question, marked))
    return found


def _state(prepared: Prepared) -> Int:
    """What lasts of all stages together, on one rank of each."""
    embedding, head, _ = prepared.outside_state
    total = _lasting(prepared, embedding) + _lasting(prepared, head)
    for kind, state in zip(prepared.kinds, prepared.layer_state, strict=True):
        total = total + _lasting(prepared, state) * len(kind.positions)
    return total


def _lasting(prepared: Prepared, state: StateRows) -> Int:
    total = total_bytes(state.of("weights")) + total_bytes(state.of("master_weights"))
    total = total + total_bytes(state.of("optimizer_moments"))
    persist = prepared.stack.gradients_persist and prepared.run.optimizer_impl != "in-backward"
    return total + total_bytes(state.of("gradients")) if persist else total


def _saved(prepared: Prepared) -> Int:
    """What all layers save in the micro-batches in flight at the end of forward, over all stages together."""
    total: Int = 0
    if prepared.traced:  # these programs say what they keep only when they are run
        return total
    for kind, rows in zip(prepared.kinds, prepared.kept_rows, strict=True):
        kept = layer.boundary(prepared.scope).bytes if prepared.run.recompute.kind == "full" else total_bytes(rows)
        total = total + kept * len(kind.positions)
    if len(prepared.kinds) > 1:
        return total
    # 1F1B holds min(pp − r, m) micro-batches on stage r, a pp-th of the layers each
    pp, count = prepared.layout.pp, minimum(prepared.run.micro_batches, prepared.layout.pp)
    held = count * (count + 1) // 2 + (pp - count) * count
    mean: Int = total * held // pp  # type: ignore[assignment]
    return mean


def least_gpus(question: Question) -> int:
    """GPUs without which not even one copy of what lasts would fit."""
    if not _bounded(question):
        return 1
    policy = question.recompute or question.run.recompute
    run = replace(question.run, recompute=policy, micro_batches=micro_batches(question, 1, 1, 1))
    made = recipe(question.stack, question.recipe, sharded=True)
    alone = Prepared(
        architecture=question.architecture, recipe=made, layout=Layout(), run=run, stack=question.stack,
        gpu=question.gpu,
    )  # fmt: skip
    return -(-int(_state(alone)) // usable_bytes(question.gpu, question.margin))
