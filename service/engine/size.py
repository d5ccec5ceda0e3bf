"""The one door in: size(architecture, recipe, layout, run, stack, gpu) → Sizing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from service.engine import offload, transients
from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.intervals import Interval, intervals
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS, OUTSIDE, TERMS, Bundle, TermName
from service.engine.parameters import count
from service.engine.recipe import Recipe
from service.engine.run import Recompute, Run
from service.engine.runtime import Runtime, runtime
from service.engine.saved_tensors import traced
from service.engine.stacks import Stack
from service.engine.stage import (
    Prepared,
    StageView,
    all_saved_bundles,
    all_state_bundles,
    outside_bundles,
    recompute_bundles,
    saved_bundles,
    saved_bytes,
    state_bundles,
    view,
)
from service.engine.timeline import Timeline, moment_name, moments, timeline
from service.engine.transients.optimizer import local_parameters


class StageSizing(NamedTuple):
    """One pipeline stage: its ledger and what it comes to at the three levels of memory, in bytes."""

    stage: int
    bundles: tuple[Bundle, ...]
    line: Timeline
    instant: int
    allocated_bytes: int
    saved_bytes: int
    parameters: int
    runtime: Runtime
    #: what offloading keeps in host memory
    host_bytes: int

    @property
    def reserved_bytes(self) -> int:
        return self.allocated_bytes + int(self.runtime.slack)

    @property
    def device_bytes(self) -> int:
        return self.reserved_bytes + self.beside_torch_bytes

    @property
    def beside_torch_bytes(self) -> int:
        """What the process takes without torch's allocator: context and communicators."""
        return int(self.runtime.context) + int(self.runtime.communicators)

    @property
    def needed_bytes(self) -> int:
        """What the run cannot do without: cached blocks beyond the firm slack are given back on a full card."""
        return self.allocated_bytes + self.beside_torch_bytes + int(self.runtime.firm_slack)


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """The answer for one run on one layout. `fullest` indexes `stages`; `whole_recompute` is the policy of the
    whole-model figures, which are worked out only when somebody asks for them."""

    architecture: Architecture
    recipe: Recipe
    layout: Layout
    run: Run
    stack: Stack
    gpu: Gpu
    margin: float
    parameters: int
    trainable_parameters: int
    whole_recompute: Recompute
    stages: tuple[StageSizing, ...]
    fullest: int
    #: the stage that was asked for; None lets every stage count
    stage: int | None
    intervals: dict[str, Interval]

    @cached_property
    def whole_model(self) -> tuple[Bundle, ...]:
        """One unsharded copy of everything and what one micro-batch saves."""
        return whole_model(self.prepared(), self.whole_recompute)

    def prepared(self) -> Prepared:
        """The run as the stages see it."""
        return Prepared(
            architecture=self.architecture, recipe=self.recipe, layout=self.layout, run=self.run, stack=self.stack,
            gpu=self.gpu,
        )  # fmt: skip

    @property
    def peak(self) -> StageSizing:
        """The stage that decides whether the run fits."""
        return self.stages[self.fullest]

    @property
    def usable_bytes(self) -> int:
        return usable_bytes(self.gpu, self.margin)

    @property
    def needed_bytes(self) -> int:
        """What the run cannot do without on any of its GPUs; nearly always the fullest stage's."""
        return max(stage.needed_bytes for stage in self.asked_stages)

    @property
    def asked_stages(self) -> tuple[StageSizing, ...]:
        """The stages that decide: all, or the one that was asked for."""
        return self.stages if self.stage is None else (self.stages[self.stage],)

    @property
    def headroom_bytes(self) -> int:
        return self.usable_bytes - self.needed_bytes

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0

    @property
    def moment(self) -> str:
        """Public name of the moment at which the fullest stage peaks."""
        return moment_name(self.peak.instant)

    def moments(self) -> list[tuple[str, dict[TermName, int]]]:
        """Each moment of the step with the bytes of every term on the fullest stage."""
        line = self.peak.line
        return [
            (moment, {term: int(value) for term, value in line.at(instant).items()})
            for moment, instant in moments(line)
        ]


def usable_bytes(gpu: Gpu, margin: float) -> int:
    """The card's memory less the share that is kept free, rounded down."""
    return int(gpu.memory_bytes * (1 - margin))


def stage_bundles(prepared: Prepared, stage: StageView) -> Iterable[Bundle]:
    """The whole ledger of one stage."""
    if prepared.traced:
        yield from traced.bundles(prepared, stage)
    else:
        yield from state_bundles(prepared, stage)
        yield from saved_bundles(prepared, stage)
        yield from outside_bundles(prepared, stage)
        yield from recompute_bundles(prepared, stage)
    yield from transients.bundles(prepared, stage)


def activation_bundles(prepared: Prepared, stage: StageView) -> Iterable[Bundle]:
    """What a stage saves for backward, in all micro-batches in flight."""
    if prepared.traced:
        yield from traced.saved_bundles(prepared, stage)
    else:
        yield from saved_bundles(prepared, stage)
        yield from outside_bundles(prepared, stage)


def all_activation_bundles(prepared: Prepared, stage: StageView) -> Iterable[Bundle]:
    """What a stage saves for backward, wherever it is kept."""
    if prepared.traced:
        yield from traced.saved_bundles(prepared, stage)
    else:
        yield from all_saved_bundles(prepared, stage)
        yield from outside_bundles(prepared, stage)


def host_bytes(prepared: Prepared, stage: StageView) -> int:
    """Bytes of a stage that offloading keeps in host memory."""
    if not prepared.on_host:
        return 0
    total = 0
    for bundle in all_state_bundles(prepared, stage):
        total += int(offload.on_host(bundle.rows, prepared.on_host) * bundle.alive[-1])
    for bundle in all_activation_bundles(prepared, stage):
        if bundle.layer != OUTSIDE:
            total += int(offload.on_host(bundle.rows, prepared.on_host) * bundle.alive[LOSS])
    return total


def size_stage(prepared: Prepared, index: int) -> StageSizing:
    """Ledger, peak and levels of one stage."""
    stage = view(prepared, index)
    bundles = tuple(stage_bundles(prepared, stage))
    line = timeline(bundles)
    instant = line.peak_instant()
    allocated = int(line.allocated(instant))
    return StageSizing(
        stage=index,
        bundles=bundles,
        line=line,
        instant=instant,
        allocated_bytes=allocated,
        saved_bytes=int(saved_bytes(activation_bundles(prepared, stage))),
        parameters=int(local_parameters(prepared, stage)),
        runtime=runtime(allocated, prepared.layout, prepared.run, prepared.stack, prepared.gpu, line),
        host_bytes=host_bytes(prepared, stage),
    )


def whole_model(prepared: Prepared, recompute: Recompute) -> tuple[Bundle, ...]:
    """One unsharded copy of everything and one micro-batch: state and saved tensors, no working, no runtime."""
    alone = replace(
        prepared,
        layout=Layout(),
        run=replace(prepared.run, micro_batches=1, vocab_multiple=None, pipeline_schedule="1f1b", recompute=recompute),
    )
    stage = view(alone, 0)
    return (*all_state_bundles(alone, stage), *all_activation_bundles(alone, stage))


def size(
    architecture: Architecture, recipe: Recipe, layout: Layout, run: Run, stack: Stack, gpu: Gpu, *,
    margin: float = 0.05, stage: int | None = None, whole_recompute: Recompute | None = None,
) -> Sizing:  # fmt: skip
    """Size one run on one layout of plain degrees.

    `whole_recompute` is the policy of the whole-model figures where it is not the run's own: what was asked, not what
    a recommender chose.

    The fullest stage (largest device bytes, the lower one on a tie) decides, unless `stage` asks for another. The
    layout must be possible (`layout.impossible` yields nothing).
    """
    prepared = Prepared(architecture=architecture, recipe=recipe, layout=layout, run=run, stack=stack, gpu=gpu)
    stages = tuple(size_stage(prepared, index) for index in range(int(layout.pp)))
    # two full cards look alike from outside; what they cannot do without still tells which is fuller
    fullest = max(range(len(stages)), key=lambda at: (stages[at].device_bytes, stages[at].needed_bytes, -at))
    chosen = fullest if stage is None else stage
    peak = stages[chosen]
    return Sizing(
        architecture=architecture,
        recipe=recipe,
        layout=layout,
        run=run,
        stack=stack,
        gpu=gpu,
        margin=margin,
        parameters=count(architecture),
        trainable_parameters=trainable_parameters(prepared),
        whole_recompute=whole_recompute or run.recompute,
        stages=stages,
        fullest=chosen,
        stage=stage,
        intervals=intervals(
            {"allocated": peak.allocated_bytes, "reserved": peak.reserved_bytes, "device": peak.device_bytes},
            layout, run, stack, gpu,
        ),
    )  # fmt: skip


def trainable_parameters(prepared: Prepared) -> int:
    """Parameters that the optimizer updates, in the whole model."""
    found = prepared.blocks
    total = sum(holding.trainable for holding in (*found.embedding, *found.head))
    for kind, block in zip(prepared.kinds, found.layers, strict=True):
        total += len(kind.positions) * sum(holding.trainable for holding in block)
    return total


def bytes_at(bundles: Iterable[Bundle], instant: int) -> dict[TermName, int]:
    """Sum of the bundles per term at one instant."""
    totals: dict[TermName, int] = dict.fromkeys(TERMS, 0)
    for bundle in bundles:
        totals[bundle.term] += int(bundle.bytes * bundle.alive[instant])
    return totals


LOSS = INSTANTS.index("loss")


def whole_model_bytes(sizing: Sizing) -> dict[TermName, int]:
    """State and saved tensors of one unsharded copy. Gradients count in full, whenever they appear in the step."""
    totals = bytes_at(sizing.whole_model, LOSS)
    totals["gradients"] = bytes_at(sizing.whole_model, INSTANTS.index("optimizer_step"))["gradients"]
    return totals
