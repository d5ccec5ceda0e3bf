"""Blocks that torch's caching allocator holds and no tensor uses: reserved − allocated.

Freed blocks stay with the process. What the next large tensor cannot use of them is slack: holes that small tensors
left, blocks of another size from another moment of the step. Expandable segments can join neighbouring holes, fixed
segments cannot. Near the limit of the card the allocator gives whole free segments back and tries again.
"""

from __future__ import annotations

from typing import NamedTuple

from service.engine.elementwise import Int, maximum, share, where
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
    are too small for logits. The others: of what one phase of the step takes when another phase is the fullest: the
    logits of the loss, the blocks of a layer's forward or backward, the temporaries of the step.
    """

    base: Quantity
    gradients: Quantity
    loss: Quantity
    forward: Quantity
    backward: Quantity
    step: Quantity


NONE = Quantity(0, 0, 0, "does not arise")
FMS = "fms-acceleration tables, regression over 54 runs"
EAGER = Habit(
    base=Quantity(10, 30, 150, FMS),
    gradients=NONE,
    loss=Quantity(0, 350, 1000, FMS),
    forward=Quantity(0, 350, 1000, FMS),
    backward=Quantity(500, 1100, 1500, FMS),
    step=Quantity(0, 200, 500, FMS),
)
HABITS = {
    "reference": Habit(Quantity(10, 50, 200, "between the stacks"), NONE, NONE, NONE, NONE, NONE),
    "megatron": Habit(
        Quantity(28, 65, 145, "SimuMax B200 table; Megatron-SWIFT examples"), NONE, NONE, NONE, NONE, NONE
    ),
    "torchtitan": Habit(
        base=Quantity(0, 120, 200, "torchtitan tables of 2024, default allocator"),
        gradients=Quantity(0, 1000, 1000, "torchtitan: 8 against 128 GPUs, 17.5 bytes a parameter"),
        loss=NONE,
        forward=NONE,
        backward=NONE,
        step=NONE,
    ),
    "huggingface": EAGER,
    "deepspeed": Habit(Quantity(60, 146, 250, "BigScience tables and logs; ms-swift"), NONE, NONE, NONE, NONE, NONE),
}
#: Expandable segments join holes: what is left, in thousandths of allocated.
EXPANDABLE = Quantity(0, 25, 60, "torchtitan runs with expandable segments; Megatron-SWIFT")
#: The part of the slack that a full card cannot give back, in thousandths of allocated. Runs that came closest to their
#: card's limit had 11 % to spare beyond their tensors (MPT tables, fixed segments); 1.5 to 5 % is what verdicts bear.
FIRM_PERMILLE = Quantity(15, 40, 50, "fms-acceleration and MPT runs near the limit of the card")
EXPANDABLE_FIRM_PERMILLE = Quantity(5, 15, 50, "expandable segments reserve by the page")


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
    firm = EXPANDABLE_FIRM_PERMILLE if run.allocator == "expandable" else FIRM_PERMILLE
    return share(allocated, firm.value, THOUSAND) + cuda_graphs(layout, run)


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
    if run.allocator != "expandable":
        cached = cached + other_phases(line, habit)
    if run.compile:
        cached = cached + COMPILED.value
    return maximum(cached + cuda_graphs(layout, run), firm_slack(peak, layout, run))


FORWARD, LOSS, FIRST_BACKWARD, LAYER, _, _, STEP = range(len(INSTANTS))


def other_phases(line: Timeline, habit: Habit) -> Int:
    """Cached blocks of the phases of a step that are not its fullest."""
    working, activations = line.terms["working"], line.terms["activations"]
    before = activations[FORWARD]
    loss = maximum(working[LOSS] + activations[LOSS], working[FIRST_BACKWARD] + activations[FIRST_BACKWARD]) - before
    phases = (
        (maximum(loss, 0), (LOSS, FIRST_BACKWARD), habit.loss),
        (working[FORWARD], (FORWARD,), habit.forward),
        (working[LAYER], (LAYER, LAYER + 1, LAYER + 2), habit.backward),
        (working[STEP] + line.largest("gradients"), (STEP,), habit.step),
    )
    peak = line.peak()
    total: Int = 0
    for size, instants, quantity in phases:
        fullest: Int = 0
        for instant in instants:
            fullest = maximum(fullest, line.allocated(instant))
        total = total + where(fullest < peak, share(size, quantity.value, THOUSAND), 0)
    return total


def slack_bounds(allocated: int, reserved: int, layout: Layout, run: Run, stack: Stack) -> tuple[int, int]:
    """Least and most slack in bytes that the named habits allow around what was predicted."""
    base = base_permille(run, stack)
    habit = HABITS[stack.name]
    spread = habit.gradients.high > 0 or habit.backward.high > 0
    predicted = max(reserved - allocated, 0)
    graphs = int(cuda_graphs(layout, run))
    least = allocated * base.low // THOUSAND
    most = max(allocated * base.high // THOUSAND + graphs, predicted * 2 if spread else 0)
    return min(least, predicted), max(most, predicted)
