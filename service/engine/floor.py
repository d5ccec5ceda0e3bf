"""The sharding floor: what is left per GPU when data-parallel sharding grows without end.

Sharding divides state and never divides activations. Past the floor more GPUs do not help; only a lever that touches
activations, the gathered working set or the runtime does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.engine.elementwise import Int, maximum
from service.engine.layout import Layout, Shard
from service.engine.question import Plan
from service.engine.runtime import runtime
from service.engine.search.evaluate import telling_stages
from service.engine.search.table import Column
from service.engine.size import StageSizing, size_stage, stage_bundles
from service.engine.stage import view
from service.engine.timeline import timeline

#: More ranks than any state has elements: every sharded byte is gone.
ENDLESS = 1 << 40
#: A doubling that saves less than this per GPU no longer helps.
WORTH_BYTES = 1 << 30
MOST_DOUBLINGS = 24


class Floor(NamedTuple):
    """The fullest stage with endless sharding, and the GPUs up to which doubling dp still saves more than 1 GiB."""

    stage: StageSizing
    helps_until_gpus: int

    @property
    def bytes_per_gpu(self) -> int:
        return self.stage.needed_bytes


def sharded(made: Plan, dp: Int) -> Plan:
    """The same layout with `shard: parameters` over `dp` replicas, and the same micro-batches on each."""
    ranks = dp * made.layout.cp
    shard: Shard = "none" if isinstance(ranks, int) and ranks == 1 else "parameters"
    return replace(made, layout=replace(made.layout, dp=dp, shard=shard, shard_degree=None))


def fullest_stage(made: Plan) -> StageSizing:
    """The stage that needs most."""
    prepared = made.prepared()
    return max((size_stage(prepared, index) for index in _stages(made.layout, made)), key=lambda one: one.needed_bytes)


def _stages(layout: Layout, made: Plan) -> tuple[int, ...]:
    return telling_stages(made.question.architecture, int(layout.pp), int(layout.vpp), layout.stage_layers)


def floor(made: Plan) -> Floor:
    """Floor of a plan's own layout (same tp, pp, cp, ep, recompute, micro-batch)."""
    layout = made.layout
    first = int(max(-(-layout.ep * layout.etp // (layout.tp * layout.cp)), 1))
    dp = first * 2 ** np.arange(MOST_DOUBLINGS + 1, dtype=np.int64)
    needed = needed_by_replicas(made, dp)
    helps = np.flatnonzero(needed[:-1] - needed[1:] > WORTH_BYTES)
    last = int(dp[helps[-1] + 1]) if len(helps) else first
    return Floor(fullest_stage(sharded(made, ENDLESS)), int(layout.tp * layout.pp * layout.cp) * last)


def needed_by_replicas(made: Plan, dp: Column) -> Column:
    """What the fullest stage needs under `shard: parameters` for each number of replicas."""
    needed = np.zeros(len(dp), dtype=np.int64)
    together = dp * int(made.layout.cp) > 1
    for place in np.flatnonzero(~together):
        needed[place] = fullest_stage(sharded(made, int(dp[place]))).needed_bytes
    plan = sharded(made, dp[together])
    prepared, allocated = plan.prepared(), 0
    for stage in _stages(plan.layout, plan):
        allocated = maximum(allocated, timeline(stage_bundles(prepared, view(prepared, stage))).peak())  # type: ignore[assignment]
    levels = runtime(allocated, prepared.layout, prepared.run, prepared.stack, prepared.gpu)
    needed[together] = allocated + levels.context + levels.communicators + levels.firm_slack
    return needed


def floor_bytes(made: Plan) -> int:
    """What the fullest stage needs under endless sharding."""
    return fullest_stage(sharded(made, ENDLESS)).needed_bytes
