"""Size a table of layouts: the engine's own formulas over arrays, one evaluation per group that shares plain facts.

Formulas branch in Python on what is sharded, on the recompute policy and on whether there is a pipeline at all;
everything else is arithmetic on columns. So a group is all rows alike in those three.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from service.engine.architecture import Architecture, layer_kinds
from service.engine.elementwise import Int, maximum
from service.engine.layout import SHARDS, Layout
from service.engine.pipeline import layers_of
from service.engine.question import Question, lay_out
from service.engine.runtime import runtime
from service.engine.search.space import recomputes
from service.engine.search.table import WHOLE, Column, Table
from service.engine.size import stage_bundles
from service.engine.stacks import recipe
from service.engine.stage import Prepared, view
from service.engine.timeline import timeline

#: More bytes than any device has, and less than 64 bits hold.
ENDLESS = 1 << 62
#: Rows × stages up to which all stages are evaluated in one pass.
TOGETHER = 4096


def needed_bytes(question: Question, layouts: Table) -> Column:
    """What the fullest GPU of every layout cannot do without, in bytes: equal to the single sizing's `needed_bytes`."""
    if beyond_64_bits(question, layouts):
        return np.full(len(layouts), ENDLESS, dtype=np.int64)
    result = np.zeros(len(layouts), dtype=np.int64)
    for rows in groups(layouts):
        result[rows] = _needed(question, layouts.take(rows))
    return result


def beyond_64_bits(question: Question, layouts: Table) -> bool:
    """Whether saved tensors could leave 64 bits before any degree divides them: then they fit nowhere either.

    Bounds every product that the formulas form: tokens × (logits, or everything a layer keeps) × layers × micro-batches
    in flight, and the scores of unfused attention.
    """
    if not len(layouts):
        return False
    architecture, sequence = question.architecture, question.run.sequence_length
    tokens = int(layouts.micro_batch.max()) * sequence
    moe = architecture.moe
    width = architecture.hidden_size + architecture.query_width + (architecture.ffn_size or 0)
    width += moe.top_k * (moe.ffn_size + architecture.hidden_size) + moe.experts + moe.shared_width if moe else 0
    kept = 64 * width * architecture.layers + 32 * architecture.vocab_size
    kept += 16 * architecture.heads * sequence * architecture.layers if question.run.attention == "eager" else 0
    return tokens * kept * 2 * int(layouts.pp.max()) > ENDLESS


def groups(layouts: Table) -> Iterator[Column]:
    """Indices of the rows that share every plain fact."""
    facts = (layouts.shard, layouts.recompute, layouts.pp > 1)
    code = np.zeros(len(layouts), dtype=np.int64)
    for fact in facts:
        code = code * 1024 + fact
    order = np.argsort(code, kind="stable")
    changes = np.flatnonzero(np.diff(code[order])) + 1
    return (rows for rows in np.split(order, changes) if len(rows))


def prepare(question: Question, layouts: Table) -> Prepared:
    """The rows of one group as the stages see them."""
    shard = SHARDS[int(layouts.shard[0])]
    whole = bool((layouts.shard_degree == WHOLE).all()) and question.shard_degree is None
    asked = layouts.shard_degree if question.shard_degree is None else question.shard_degree
    layout, run = lay_out(
        question, tp=layouts.tp, pp=layouts.pp, cp=layouts.cp, ep=layouts.ep, etp=layouts.etp, dp=layouts.dp,
        micro_batch=layouts.micro_batch, vpp=layouts.vpp if layouts.pp[0] > 1 else 1, shard=shard,
        recompute=recomputes(question)[int(layouts.recompute[0])], shard_degree=None if whole else asked,
        pipelined=bool(layouts.pp[0] > 1), split=bool((layouts.tp > 1).any()),
    )  # fmt: skip
    made = recipe(question.stack, question.recipe, sharded=shard == "parameters")
    return Prepared(
        architecture=question.architecture, recipe=made, layout=layout, run=run, stack=question.stack, gpu=question.gpu
    )


def _needed(question: Question, layouts: Table) -> Column:
    """Needed bytes of one group. Stages are rows of their own where the table is small: fewer, longer operations."""
    passes = _stages(question, layouts)
    together = len(layouts) * len(passes) <= TOGETHER
    rows = layouts.take(np.tile(np.arange(len(layouts)), len(passes))) if together else layouts
    prepared = prepare(question, rows)
    allocated: Int = 0
    for stage in [np.concatenate(passes)] if together else passes:
        allocated = maximum(allocated, timeline(stage_bundles(prepared, view(prepared, stage))).peak())
    levels = runtime(allocated, prepared.layout, prepared.run, prepared.stack, prepared.gpu)
    needed = allocated + levels.context + levels.communicators + levels.firm_slack
    by_stage: Column = np.broadcast_to(np.asarray(needed, dtype=np.int64), (len(rows),)).reshape(-1, len(layouts))
    fullest: Column = by_stage.max(axis=0)
    return fullest


def _stages(question: Question, layouts: Table) -> list[Column]:
    """Stage numbers, one array a pass, that cover every stage that can be the fullest of its layout."""
    shapes, places = np.unique(layouts.pp * 1024 + layouts.vpp, return_inverse=True)
    lists = [
        telling_stages(question.architecture, int(shape) // 1024, int(shape) % 1024, question.stage_layers)
        for shape in shapes
    ]
    return [
        np.asarray([found[min(number, len(found) - 1)] for found in lists], dtype=np.int64)[places]
        for number in range(max(len(found) for found in lists))
    ]


@lru_cache(maxsize=4096)
def telling_stages(
    architecture: Architecture, pp: int, vpp: int, stage_layers: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Stages that can be the fullest: the first, the last, and of the stages between them the earliest of each make-up.

    A later stage never has more micro-batches in flight than an earlier one (`pipeline.in_flight` falls with the
    stage), so of two stages that hold the same layers in every chunk only the earlier can need more.
    """
    layout = Layout(pp=pp, vpp=vpp, stage_layers=stage_layers)
    kinds = layer_kinds(architecture)
    found = {0: 0, pp - 1: 0}
    seen: set[tuple[int, ...]] = set()
    for stage in range(1, pp - 1):
        make_up = tuple(int(layers_of(architecture, layout, kind, stage, chunk))
                        for kind in kinds for chunk in range(vpp))  # fmt: skip
        if make_up not in seen:
            seen.add(make_up)
            found[stage] = 0
    return tuple(sorted(found))
