"""A bound from below on what a layout needs, from the engine's own rows, cheap enough to skip most of the space.

State lives through the whole step and at least one micro-batch is in flight on every stage, so the fullest stage holds
no less than the mean over the stages. Offloading takes rows away: with it there is no bound.
"""

from __future__ import annotations

import numpy as np

from service.engine.elementwise import Int
from service.engine.ledger import total_bytes
from service.engine.question import Question
from service.engine.saved_tensors import layer
from service.engine.search.evaluate import prepare
from service.engine.search.table import Column, Table
from service.engine.stage import Prepared
from service.engine.state import StateRows


def least_bytes(question: Question, layouts: Table) -> Column:
    """Bytes that the fullest GPU of each layout holds at the very least."""
    least = np.zeros(len(layouts), dtype=np.int64)
    if question.run.offload or question.stage_layers is not None:
        return least
    for level in np.unique(layouts.shard):
        rows = np.flatnonzero(layouts.shard == level)
        least[rows] += _state(prepare(question, layouts.take(rows)))
    for split in (False, True):
        for policy in np.unique(layouts.recompute):
            rows = np.flatnonzero((layouts.recompute == policy) & ((layouts.tp > 1) == split))
            if len(rows):
                least[rows] += _saved(prepare(question, layouts.take(rows)))
    return least // layouts.pp


def _state(prepared: Prepared) -> Int:
    """Weights, masters and moments of all stages together, on one rank of each."""
    embedding, head, _ = prepared.outside_state
    total = _lasting(prepared, embedding) + _lasting(prepared, head)
    for kind, state in zip(prepared.kinds, prepared.layer_state, strict=True):
        total = total + _lasting(prepared, state) * len(kind.positions)
    return total


def _lasting(prepared: Prepared, state: StateRows) -> Int:
    total = total_bytes(state.of("weights")) + total_bytes(state.of("master_weights"))
    return total if prepared.recipe.moments_on_host else total + total_bytes(state.of("optimizer_moments"))


def _saved(prepared: Prepared) -> Int:
    """What all layers of one micro-batch save at the end of forward."""
    total: Int = 0
    for kind, rows in zip(prepared.kinds, prepared.kept_rows, strict=True):
        kept = layer.boundary(prepared.scope).bytes if prepared.run.recompute.kind == "full" else total_bytes(rows)
        total = total + kept * len(kind.positions)
    return total
