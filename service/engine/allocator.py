"""Blocks that torch's caching allocator holds and no tensor uses: reserved − allocated.

Freed blocks stay with the process. What the next large tensor cannot use of them is slack: holes that small tensors
left, blocks of another size from another moment of the step. Expandable segments can join neighbouring holes, fixed
segments cannot. Near the limit of the card the allocator gives whole free segments back and tries again.
"""

from __future__ import annotations

from typing import NamedTuple

from service.engine.elementwise import Int, maximum, minimum, share, where
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS
from service.engine.quantities import MIB, Quantity
from service.engine.run import Run
from service.engine.stacks import Stack
from service.engine.timeline import Timeline

LOSS_INSTANTS = (INSTANTS.index("loss"), INSTANTS.index("first_backward"))
THOUSAND = 1000


class Habit(NamedTuple):
    """How a stack's allocations fail to fit each other, in thousandths of the bytes named.

    `base`: of everything allocated at the peak. `gradients`: of gradients that are freed before the loss; their holes
    are too small for logits. `others`: of the working memory that other moments of the step need.
    """

    base: Quantity
    gradients: Quantity
    others: Quantity


NONE = Quantity(0, 0, 0, "does not arise")
HABITS = {
    "reference": Habit(Quantity(10, 50, 200, "between the stacks"), NONE, NONE),
    "megatron": Habit(Quantity(28, 65, 145, "SimuMax B200 table; Megatron-SWIFT examples"), NONE, NONE),
    "torchtitan": Habit(
        Quantity(0, 120, 200, "torchtitan tables of 2024, default allocator"),
        Quantity(0, 1000, 1000, "torchtitan: 8 against 128 GPUs, 17.5 bytes a parameter"),
        NONE,
    ),
    "huggingface": Habit(
        Quantity(10, 20, 150, "fms-acceleration tables"),
        Quantity(0, 150, 500, "fms-acceleration tables"),
        Quantity(0, 250, 500, "fms-acceleration tables"),
    ),
    "deepspeed": Habit(Quantity(60, 146, 250, "BigScience tables, ms-swift benchmarks"), NONE, NONE),
}
#: Expandable segments join holes: what is left, in thousandths of allocated.
EXPANDABLE = Quantity(0, 20, 60, "torchtitan runs with expandable segments; Megatron-SWIFT")
#: The part of the slack that a full card cannot give back (fms runs near the limit: 69.3 GiB allocated in 76.6).
FIRM_PERMILLE = Quantity(5, 15, 50, "fms-acceleration runs near the limit of the card")


#: Captured graphs keep private pools that no other tensor can use: "a few GB", more than 10 GB under a pipeline.
GRAPHS = Quantity(1024 * MIB, 3072 * MIB, 10240 * MIB, "Megatron-Bridge performance guide")
GRAPHS_UNDER_PIPELINE = Quantity(3072 * MIB, 8192 * MIB, 12288 * MIB, "Megatron-Bridge performance guide")
#: Code and buffers of compiled graphs.
COMPILED = Quantity(0, 1024 * MIB, 3072 * MIB, "torchtitan tables, compiled against eager rows")


def cuda_graphs(layout: Layout, run: Run) -> Int:
    """Private pools of captured graphs."""
    if not run.cuda_graphs:
        return 0
    return where(layout.pp > 1, GRAPHS_UNDER_PIPELINE.value, GRAPHS.value)


def firm_slack(allocated: Int, layout: Layout, run: Run) -> Int:
    """What the allocator cannot give back when the card is full."""
    return share(allocated, FIRM_PERMILLE.value, THOUSAND) + cuda_graphs(layout, run)


def base_permille(run: Run, stack: Stack) -> Quantity:
    """Slack in thousandths of what is allocated."""
    return EXPANDABLE if run.allocator == "expandable" and stack.name != "megatron" else HABITS[stack.name].base


def slack(line: Timeline, layout: Layout, run: Run, stack: Stack) -> Int:
    """Reserved − allocated at the step's fullest moment."""
    habit = HABITS[stack.name]
    peak = line.peak()
    held: Int = peak
    for instant in LOSS_INSTANTS:
        gone = line.largest("gradients") - line.terms["gradients"][instant]
        held = maximum(held, line.allocated(instant) + share(gone, habit.gradients.value, THOUSAND))
    cached = held - peak + share(peak, base_permille(run, stack).value, THOUSAND)
    if habit.others.value and run.allocator != "expandable":
        cached = cached + share(others(line), habit.others.value, THOUSAND)
    if run.compile:
        cached = cached + COMPILED.value
    return maximum(cached + cuda_graphs(layout, run), firm_slack(peak, layout, run))


#: moments whose blocks are laid out by different code: the loss, a layer's backward, the step
PHASES = (("loss", "first_backward"), ("layer_backward_first", "layer_backward_last"), ("optimizer_step",))


def others(line: Timeline) -> Int:
    """Working memory of the phases of a step other than the one with most of it."""
    total: Int = 0
    most: Int = 0
    for names in PHASES:
        largest: Int = 0
        for name in names:
            largest = maximum(largest, line.terms["working"][INSTANTS.index(name)])
        total, most = total + largest, maximum(most, largest)
    return minimum(total - most, line.peak())


def slack_bounds(allocated: int, reserved: int, layout: Layout, run: Run, stack: Stack) -> tuple[int, int]:
    """Least and most slack in bytes that the named habits allow around what was predicted."""
    base = base_permille(run, stack)
    spread = HABITS[stack.name].gradients.high > 0 or HABITS[stack.name].others.high > 0
    predicted = max(reserved - allocated, 0)
    graphs = int(cuda_graphs(layout, run))
    least = allocated * base.low // THOUSAND
    most = max(allocated * base.high // THOUSAND + graphs, predicted * 2 if spread else 0)
    return min(least, predicted), max(most, predicted)
