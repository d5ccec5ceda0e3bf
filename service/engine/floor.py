"""The sharding floor: what is left per GPU when data-parallel sharding grows without end.

Sharding divides state and never divides activations. Past the floor more GPUs do not help; only a lever that touches
activations, the gathered working set or the runtime does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from service.engine.layout import Shard
from service.engine.question import Plan
from service.engine.size import StageSizing, size_stage

#: More ranks than any state has elements: every sharded byte is gone.
ENDLESS = 1 << 44
#: A doubling that saves less than this per GPU no longer helps.
WORTH_BYTES = 1 << 30
MOST_DOUBLINGS = 20


class Floor(NamedTuple):
    """The fullest stage with endless sharding, and the GPUs up to which doubling dp still saves more than 1 GiB."""

    stage: StageSizing
    helps_until_gpus: int

    @property
    def bytes_per_gpu(self) -> int:
        return self.stage.needed_bytes


def sharded(made: Plan, dp: int) -> Plan:
    """The same layout with `shard: parameters` over `dp` replicas."""
    shard: Shard = "parameters" if dp * int(made.layout.cp) > 1 else "none"
    return replace(made, layout=replace(made.layout, dp=dp, shard=shard, shard_degree=None))


def fullest_stage(made: Plan) -> StageSizing:
    """The stage that needs most."""
    prepared = made.prepared()
    last = int(made.layout.pp) - 1
    stages = [size_stage(prepared, index) for index in sorted({0, min(1, last), last})]
    return max(stages, key=lambda stage: stage.needed_bytes)


def floor(made: Plan) -> Floor:
    """Floor of a plan's own layout (same tp, pp, cp, ep, recompute, micro-batch)."""
    model_ranks = int(made.layout.tp * made.layout.pp * made.layout.cp)
    experts = int(made.layout.ep * made.layout.etp)
    dp = max(-(-experts // int(made.layout.tp * made.layout.cp)), 1)
    before = fullest_stage(sharded(made, dp)).needed_bytes
    helps_until = model_ranks * dp
    for _ in range(MOST_DOUBLINGS):
        dp *= 2
        after = fullest_stage(sharded(made, dp)).needed_bytes
        if before - after > WORTH_BYTES:
            helps_until = model_ranks * dp
        elif dp > 64:
            break
        before = after
    return Floor(fullest_stage(sharded(made, ENDLESS)), helps_until)
