"""Pipeline schedules: which layers a stage holds, and how many micro-batches are in flight on it.

Stages (ranks) and chunks count from 0. With `vpp` chunks per stage, chunk c of stage r is virtual stage c·pp + r.
"""

from __future__ import annotations

from functools import lru_cache

from service.engine.architecture import Architecture, LayerKind
from service.engine.elementwise import Int, at, ceil_div, maximum, minimum, where
from service.engine.layout import Layout
from service.engine.run import Run


def most_chunks(layout: Layout) -> int:
    """Chunks of a stage (of the layout with most, for a table of layouts)."""
    return layout.vpp if isinstance(layout.vpp, int) else int(layout.vpp.max())


@lru_cache(maxsize=1024)
def _running_count(kind: LayerKind, layers: int) -> tuple[int, ...]:
    """How many layers of `kind` lie before each position 0 … layers."""
    places, counts = frozenset(kind.positions), [0]
    for position in range(layers):
        counts.append(counts[-1] + (position in places))
    return tuple(counts)


def near_even(layers: int, chunks: int) -> tuple[int, ...]:
    """Layers of every chunk when they are dealt out as evenly as can be: earlier chunks take what is left over."""
    base, rest = divmod(layers, chunks)
    return tuple(base + (chunk < rest) for chunk in range(chunks))


def chunk_bounds(architecture: Architecture, layout: Layout, stage: Int, chunk: int) -> tuple[Int, Int]:
    """First layer and first layer after chunk `chunk` of `stage`: near even, or as `stage_layers` says."""
    virtual_stage = chunk * layout.pp + stage
    if layout.stage_layers is not None:
        starts = [0]
        for layers in layout.stage_layers:
            starts.append(starts[-1] + layers)
        return at(tuple(starts), virtual_stage), at(tuple(starts), virtual_stage + 1)
    # chunks that a layout does not have start and end behind the last layer
    first, end = (
        _layers_before(architecture, layout, virtual_stage),
        _layers_before(architecture, layout, virtual_stage + 1),
    )
    return minimum(first, architecture.layers), minimum(end, architecture.layers)


def _layers_before(architecture: Architecture, layout: Layout, virtual_stage: Int) -> Int:
    """The sums of `near_even`, for arrays of layouts too."""
    chunks = layout.pp * layout.vpp
    each: Int = architecture.layers // chunks
    rest: Int = architecture.layers % chunks
    return virtual_stage * each + minimum(virtual_stage, rest)


def layers_of(architecture: Architecture, layout: Layout, kind: LayerKind, stage: Int, chunk: int) -> Int:
    """Layers of `kind` in one chunk of one stage."""
    first, end = chunk_bounds(architecture, layout, stage, chunk)
    before = _running_count(kind, architecture.layers)
    return at(before, end) - at(before, first)


def in_flight(layout: Layout, run: Run, stage: Int, chunk: int) -> Int:
    """Micro-batches whose saved tensors chunk `chunk` of `stage` holds at the stage's fullest moment.

    GPipe keeps all of them. 1F1B keeps as many as stages follow, itself included (arXiv:2104.04473, section 2.2).
    Interleaved, the first (vpp − 1)·g + 2·(pp − stage − 1) + 1 forwards of chunks run before the first backward, g
    micro-batches through one chunk before the next chunk starts (Megatron-core schedules.py, warm-up count).
    """
    if run.pipeline_schedule == "gpipe":
        return run.micro_batches
    if isinstance(layout.vpp, int):
        whole = _whole_stage if layout.vpp == 1 else _interleaved
        return whole(layout, run, stage, chunk)
    return where(layout.vpp == 1, _whole_stage(layout, run, stage, chunk), _interleaved(layout, run, stage, chunk))


def _whole_stage(layout: Layout, run: Run, stage: Int, chunk: int) -> Int:
    """One chunk a stage: as many as stages follow, itself included; vocabulary-parallel schedules hold more
    (arXiv:2411.05288, sections 4 and 5)."""
    held = minimum(layout.pp - stage, run.micro_batches)
    if run.pipeline_schedule == "vocab-parallel-1":
        return minimum(held + 2, run.micro_batches)
    if run.pipeline_schedule == "vocab-parallel-2":
        return minimum(held + 1, run.micro_batches)
    if run.pipeline_schedule == "vocab-parallel-interlaced":
        return minimum(ceil_div(held * 3, 2), run.micro_batches)
    return held


def _interleaved(layout: Layout, run: Run, stage: Int, chunk: int) -> Int:
    group: Int = layout.pp if run.microbatch_group is None else run.microbatch_group
    forwards = (layout.vpp - 1) * group + 2 * (layout.pp - stage - 1) + 1
    forwards = minimum(forwards, run.micro_batches * layout.vpp)
    rounds: Int = forwards // (group * layout.vpp)
    rest: Int = forwards % (group * layout.vpp)
    last_round = minimum(maximum(rest - chunk * group, 0), group)
    return minimum(rounds * group + last_round, run.micro_batches)
