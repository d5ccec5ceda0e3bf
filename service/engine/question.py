"""A question with its layout still open, and the step from it to one plan that can be sized."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.engine.architecture import Architecture
from service.engine.elementwise import Int, maximum
from service.engine.errors import FieldError, nearest
from service.engine.hardware import Gpu
from service.engine.layout import Layout, Shard, impossible, impossible_sequence
from service.engine.pipeline import near_even
from service.engine.run import Recompute, Run
from service.engine.size import Sizing, size
from service.engine.stacks import RecipeRequest, Stack, recipe
from service.engine.stage import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about a run before it is laid out.

    None leaves a degree, `vpp`, `shard`, `recompute` or `micro_batch` to whoever lays the run out; a plan that is not
    told takes vpp = 1, etp = tp and whole sharding. `run` carries everything else; its own micro_batch, micro_batches
    and recompute are overwritten by a plan.
    """

    architecture: Architecture
    stack: Stack
    gpu: Gpu
    recipe: RecipeRequest
    run: Run
    margin: float = 0.05
    global_batch: int | None = None
    stage: int | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    sp: bool | None = None
    etp: int | None = None
    vpp: int | None = None
    shard: Shard | None = None
    shard_degree: int | None = None
    stage_layers: tuple[int, ...] | None = None
    recompute: Recompute | None = None
    micro_batch: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One layout of a question: everything `size` needs."""

    question: Question
    layout: Layout
    run: Run

    @property
    def gpus(self) -> int:
        return int(self.layout.gpus)

    @property
    def nodes(self) -> int:
        return -(-self.gpus // self.question.gpu.gpus_per_node)

    def prepared(self) -> Prepared:
        """The plan as the stages see it."""
        question = self.question
        made = recipe(question.stack, question.recipe, sharded=self.layout.shard == "parameters")
        return Prepared(
            architecture=question.architecture,
            recipe=made,
            layout=self.layout,
            run=self.run,
            stack=question.stack,
            gpu=question.gpu,
        )

    def size(self) -> Sizing:
        """Size the plan."""
        question, prepared = self.question, self.prepared()
        return size(
            question.architecture, prepared.recipe, self.layout, self.run, question.stack, question.gpu,
            margin=question.margin, stage=question.stage, whole_recompute=question.recompute or Recompute(),
        )  # fmt: skip


def micro_batches(question: Question, dp: Int, pp: Int, micro_batch: Int) -> Int:
    """Micro-batches of one step on one data-parallel rank: what `global_batch` says, else one, or a filled pipeline."""
    if question.global_batch is not None:
        whole: Int = question.global_batch // (dp * micro_batch)
        return maximum(whole, 1)
    return pp


def plan(
    question: Question, *, tp: int, pp: int, cp: int, ep: int, dp: int, shard: Shard, recompute: Recompute,
    micro_batch: int, etp: int | None = None, vpp: int | None = None, shard_degree: int | None = None,
    uneven: bool = False,
) -> Plan:  # fmt: skip
    """Lay a question out. What the question fixes wins over nothing here: callers pass its own values on.

    `uneven` deals out layers that do not split evenly over a pipeline as evenly as can be, and says so in the layout.
    """
    expert_tp = etp if etp is not None else default_etp(question, tp)
    layout, run = lay_out(
        question, tp=tp, pp=pp, cp=cp, ep=ep, etp=expert_tp, dp=dp, micro_batch=micro_batch,
        vpp=vpp or question.vpp or 1, shard="none" if dp * cp == 1 else shard, recompute=recompute,
        shard_degree=shard_degree or question.shard_degree, pipelined=pp > 1, split=tp > 1,
    )  # fmt: skip
    chunks = pp * int(layout.vpp)
    if uneven and layout.stage_layers is None and question.architecture.layers % chunks:
        layout = replace(layout, stage_layers=near_even(question.architecture.layers, chunks))
    return Plan(question=question, layout=layout, run=run)


def default_etp(question: Question, tp: int) -> int:
    """Expert-tensor degree when nobody chooses it: as asked, else the experts are split like everything else."""
    if question.etp is not None:
        return question.etp
    return tp if question.architecture.moe is not None else 1


def lay_out(
    question: Question, *, tp: Int, pp: Int, cp: Int, ep: Int, etp: Int, dp: Int, micro_batch: Int, vpp: Int,
    shard: Shard, recompute: Recompute, shard_degree: Int | None, pipelined: bool, split: bool,
) -> tuple[Layout, Run]:  # fmt: skip
    """Layout and run of one plan, or of many at once (arrays of degrees) that share the facts given as plain values.

    `pipelined` says that pp > 1 for every one of them, `split` that tp > 1 for any.
    """
    sp = question.sp if question.sp is not None else question.stack.sequence_parallel
    layout = Layout(
        tp=tp,
        sp=sp and split,
        pp=pp,
        vpp=vpp,
        cp=cp,
        ep=ep,
        etp=etp,
        dp=dp,
        shard=shard,
        shard_degree=shard_degree,
        stage_layers=question.stage_layers,
        vocabulary_over_pipeline=pipelined and question.run.pipeline_schedule.startswith("vocab-parallel"),
    )
    reshard = question.run.reshard_after_forward
    run = replace(
        question.run,
        micro_batch=micro_batch,
        micro_batches=micro_batches(question, dp, pp, micro_batch),
        recompute=recompute,
        reshard_after_forward=not pipelined if reshard is None else reshard,
        vocab_multiple=vocab_multiple(question, tp),
    )
    return layout, run


def vocab_multiple(question: Question, tp: Int) -> Int | None:
    """What the vocabulary is padded to: as asked, else the stack's habit (Megatron: 128·tp)."""
    if question.run.vocab_multiple is not None:
        return question.run.vocab_multiple
    per_tp = question.stack.vocab_multiple_per_tp
    return per_tp * tp if per_tp else None


def refusals(question: Question, layout: Layout) -> Iterator[FieldError]:
    """Every reason why this stack or this model cannot run `layout`."""
    stack = question.stack
    for name in ("tp", "pp", "cp", "ep"):
        degree = int(getattr(layout, name))
        if degree > 1 and name not in stack.degrees:
            able = ", ".join(name for name in ("dp", "tp", "pp", "cp", "ep") if name in stack.degrees)
            yield FieldError(
                f"/{name}", f"{stack.name} does not run {name}={degree}", str(degree),
                f"1 on {stack.name}, which runs {able}; or a stack that runs {name}", ("1",),
            )  # fmt: skip
    if layout.shard not in stack.shards:
        yield FieldError(
            "/shard", f"{stack.name} cannot shard {layout.shard}", layout.shard, ", ".join(stack.shards),
            nearest(layout.shard, stack.shards) or (stack.shards[-1],),
        )  # fmt: skip
    if stack.name == "deepspeed" and layout.pp > 1 and layout.shard in ("gradients", "parameters"):
        yield FieldError(
            "/shard", "DeepSpeed runs pipelines with ZeRO-1 at most", layout.shard, "none or optimizer with pp > 1",
            ("optimizer", "none"),
        )  # fmt: skip
    yield from impossible(question.architecture, layout)
    yield from impossible_sequence(layout, question.run.sequence_length)
