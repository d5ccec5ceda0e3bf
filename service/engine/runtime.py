"""From what tensors take to what the device shows: allocated → reserved → device.

Every step up is a named quantity with a value, bounds and a source; none hides in a factor on the total.

- `context`: the CUDA or HIP context, loaded kernels and libraries of one process;
- `communicators`: NCCL or RCCL buffers, one set per communicator, not growing with the world;
- `allocator`: blocks that torch's caching allocator holds and no tensor uses (reserved − allocated).
"""

from __future__ import annotations

from typing import NamedTuple

from service.engine.allocator import firm_slack, slack
from service.engine.elementwise import Bool, Int, minimum, where
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.quantities import MIB, Quantity
from service.engine.run import Run
from service.engine.stacks import Stack
from service.engine.timeline import Timeline

#: pytorch PR 86509 (287 MB with lazy loading of kernels, 667 MB without), unsloth-zoo PR 1053 (426 MiB, torch 2.10).
LAZY_CONTEXT = Quantity(300 * MIB, 450 * MIB, 700 * MIB, "pytorch PR 86509; unsloth-zoo PR 1053")
#: Before CUDA 11.7 every kernel was loaded at start: 1113 to 1343 MiB on V100, 1573 MiB on A100. Megatron-DeepSpeed
#: code is of that time.
PRE_AMPERE = ("6", "7")
PRE_AMPERE_CONTEXT = Quantity(300 * MIB, 1100 * MIB, 1400 * MIB, "transformers performance docs of 2022 on V100")
EAGER_CONTEXT = Quantity(1100 * MIB, 1300 * MIB, 1600 * MIB, "BigScience 1.3B and 104B notes, tr11 chronicles")
#: nccl issue 964: 544 MB for a communicator of two GPUs, 688 MB for more, on four A100 with NVLink; nccl issue 1685:
#: 1.06 GB on eight H100; fms-acceleration tables: about 1.4 GiB more on several A100 than on one.
FIRST_COMMUNICATOR = Quantity(400 * MIB, 1000 * MIB, 1500 * MIB, "nccl issues 964, 1685; fms-acceleration tables")
NEXT_COMMUNICATOR = Quantity(250 * MIB, 400 * MIB, 700 * MIB, "nccl issues 864, 964; LUMI guide issue 111")
#: nccl issue 1685: 1.06 GB rise to 4.34 GB after the first intra-node all_to_all_single.
ALL_TO_ALL = Quantity(0, 2500 * MIB, 3300 * MIB, "nccl issue 1685")


class Runtime(NamedTuple):
    """What a process takes beyond its tensors, in bytes; `firm_slack` is the part of `slack` that never comes back."""

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


def context(stack: Stack, run: Run, gpu: Gpu) -> Quantity:
    """The context of one process: kernels are loaded when they are needed, except by code that is older than that
    (Megatron without Transformer Engine, Megatron-DeepSpeed) and on GPUs whose measurements are."""
    if stack.name == "deepspeed" and run.vocab_multiple is not None:
        return EAGER_CONTEXT
    if stack.name == "megatron" and "te" not in run.kernels:
        return EAGER_CONTEXT
    old = gpu.compute_capability is not None and gpu.compute_capability.split(".")[0] in PRE_AMPERE
    return PRE_AMPERE_CONTEXT if old else LAZY_CONTEXT


def runtime(
    allocated: Int, layout: Layout, run: Run, stack: Stack, gpu: Gpu, line: Timeline | None = None
) -> Runtime:  # fmt: skip
    """Context, communicators and slack beside `allocated` bytes; cached slack never goes beyond the card.

    Without `line` (a search asks only what the run needs) `slack` is the firm part alone.
    """
    base = context(stack, run, gpu).value
    groups = communicators(layout, run)
    firm = firm_slack(allocated, layout, run)
    if line is None:
        return Runtime(base, groups, firm, firm)
    room = gpu.memory_bytes - base - groups - allocated
    cached = minimum(slack(line, layout, run, stack), where(room > firm, room, firm))
    return Runtime(base, groups, cached, firm)


def beside_torch_bounds(layout: Layout, run: Run, stack: Stack, gpu: Gpu) -> tuple[int, int]:
    """Least and most that context and communicators take, in bytes, for one layout of plain degrees."""
    base, count = context(stack, run, gpu), int(communicator_count(layout))
    low, high = base.low, base.high
    if count:
        low += FIRST_COMMUNICATOR.low + (count - 1) * NEXT_COMMUNICATOR.low
        high += FIRST_COMMUNICATOR.high + (count - 1) * NEXT_COMMUNICATOR.high
    if int(layout.ep) > 1 and run.moe_dispatcher == "all-to-all":
        high += ALL_TO_ALL.high
    return low, high
