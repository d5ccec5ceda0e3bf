"""From what tensors take to what the device shows: allocated → reserved → device.

Every step up is a named quantity with a value, bounds and a source; none hides in a factor on the total.

- `context`: the CUDA or HIP context, loaded kernels and libraries of one process;
- `communicators`: NCCL or RCCL buffers, one set per communicator, not growing with the world;
- `allocator`: blocks that torch's caching allocator holds and no tensor uses (reserved − allocated).
"""

from __future__ import annotations

from typing import NamedTuple

from service.engine.elementwise import Bool, Int, minimum, share, where
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Run
from service.engine.stacks import Stack

MIB = 1 << 20


class Quantity(NamedTuple):
    """A measured figure in bytes (or thousandths, for shares), with the range seen in measurements."""

    low: int
    value: int
    high: int
    source: str


#: pytorch PR 86509 (287 MB with lazy loading, 667 MB without), 426 MiB on RTX 6000 Ada with torch 2.10; up
#: to 1.6 GiB in 2021 with eager module loading.
CONTEXT = Quantity(300 * MIB, 500 * MIB, 1600 * MIB, "pytorch PR 86509; unsloth-zoo PR 1053; BigScience logs 2021")
#: nccl issue 964: 544 MB for a communicator of two GPUs, 688 MB for more, on four A100 with NVLink; nccl issue 1685:
#: 1.06 GB on eight H100.
FIRST_COMMUNICATOR = Quantity(400 * MIB, 560 * MIB, 1100 * MIB, "nccl issues 964, 1685")
NEXT_COMMUNICATOR = Quantity(250 * MIB, 400 * MIB, 700 * MIB, "nccl issues 864, 964; LUMI guide issue 111")
#: nccl issue 1685: 1.06 GB rise to 4.34 GB after the first intra-node all_to_all_single.
ALL_TO_ALL = Quantity(0, 2500 * MIB, 3300 * MIB, "nccl issue 1685")

#: reserved − allocated in thousandths of allocated: Megatron on B200 1.028–1.093 (SimuMax table); torchtitan with
#: expandable segments 1.00–1.03, without 1.15–1.2; FSDP1 with the default allocator 1.2–1.25 (fms tables).
SLACK_PERMILLE = {
    "reference": Quantity(10, 50, 200, "between the stacks"),
    "megatron": Quantity(10, 50, 120, "SimuMax B200 table; Megatron-Bridge verification cards"),
    "torchtitan": Quantity(0, 150, 250, "torchtitan benchmark tables"),
    "huggingface": Quantity(20, 150, 300, "fms-acceleration benchmark tables"),
    "deepspeed": Quantity(10, 150, 300, "BigScience tables, ms-swift benchmarks"),
}
EXPANDABLE_SLACK_PERMILLE = Quantity(0, 15, 50, "torchtitan runs with expandable segments")
#: The part of the slack that a full card cannot give back (fms runs near the limit: 69.3 GiB allocated in 76.6).
FIRM_SLACK_PERMILLE = 15


class Runtime(NamedTuple):
    """What a process takes beyond its tensors, in bytes."""

    context: Int
    communicators: Int
    slack: Int
    firm_slack: Int


def communicator_count(layout: Layout) -> Int:
    """Groups of more than one rank: data (with context), tensor, pipeline, context, expert."""
    count: Int = 0
    for degree in (layout.data_ranks, layout.tp, layout.pp, layout.cp, layout.ep):
        count = count + where(degree > 1, 1, 0)
    return count


def communicators(layout: Layout, run: Run) -> Int:
    """Buffers of all communicators of one rank."""
    count = communicator_count(layout)
    any_group: Bool = count > 0
    size = where(any_group, FIRST_COMMUNICATOR.value + (count - 1) * NEXT_COMMUNICATOR.value, 0)
    if run.moe_dispatcher == "all-to-all":
        size = size + where(layout.ep > 1, ALL_TO_ALL.value, 0)
    return size


def slack_permille(stack: Stack, run: Run) -> Quantity:
    """Allocator slack in thousandths of allocated."""
    if run.allocator == "expandable":
        return EXPANDABLE_SLACK_PERMILLE
    return SLACK_PERMILLE[stack.name]


def runtime(allocated: Int, layout: Layout, run: Run, stack: Stack, gpu: Gpu) -> Runtime:
    """Context, communicators and slack beside `allocated` bytes; slack never beyond the card."""
    context = CONTEXT.value
    groups = communicators(layout, run)
    slack = share(allocated, slack_permille(stack, run).value, 1000)
    firm = minimum(slack, share(allocated, FIRM_SLACK_PERMILLE, 1000))
    room = gpu.memory_bytes - context - groups - allocated
    elastic = minimum(slack, where(room > firm, room, firm))
    return Runtime(context, groups, elastic, firm)
