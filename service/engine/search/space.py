"""Which layouts a stack can run: degrees by the rules of model, stack, node and fast link; counts of GPUs; variants.

A family is a choice of every degree but dp; memory only falls as its dp grows. A variant is what differs within one
layout: what is sharded, what is recomputed, how the pipeline interleaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from service.engine.hardware import Gpu
from service.engine.layout import SHARD_LEVEL, Layout
from service.engine.question import Question, micro_batches, refusals
from service.engine.run import Recompute
from service.engine.search.table import WHOLE, Column, Mask, Table, product, stacked

#: The search stops here: nobody has asked for more, and every layout repeats itself long before.
MOST_GPUS = 4096
MOST_PP = 64
#: Near-even splits are tried over these many stages, for models of more layers than `DEEP`.
UNEVEN_DEGREES = (4, 8, 16, 32)
DEEP = 32
CONTEXT_DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64)
#: Chunks per stage worth trying; more shrink the bubble further and cost a transfer each.
INTERLEAVINGS = (4, 5, 3, 2, 6, 7)


def counts(gpu: Gpu) -> Column:
    """GPU counts worth asking about, ascending: powers of two inside a node, then whole nodes."""
    node = gpu.gpus_per_node
    inside = [1 << power for power in range(node.bit_length()) if 1 << power < node]
    return np.asarray([*inside, *range(node, MOST_GPUS + 1, node)], dtype=np.int64)


def recomputes(question: Question) -> tuple[Recompute, ...]:
    """The policies that the question leaves open, least first."""
    if question.recompute is not None:
        return (question.recompute,)
    return tuple(Recompute(kind=kind) for kind in question.stack.recomputes)  # type: ignore[arg-type]


def shards(question: Question) -> tuple[int, ...]:
    """Levels of sharding that the question leaves open, least first."""
    if question.shard is not None:
        return (SHARD_LEVEL[question.shard],)
    return tuple(SHARD_LEVEL[name] for name in question.stack.shards)


def micro_batch_sizes(question: Question) -> tuple[int, ...]:
    """The micro-batches that the question leaves open."""
    return MICRO_BATCHES if question.micro_batch is None else (question.micro_batch,)


def interleaving(question: Question, pp: int) -> int:
    """Chunks per stage worth trying besides one; 1 where a stage's layers or the stack do not allow it."""
    if pp == 1 or question.stack.name == "deepspeed" or question.stage_layers is not None:
        return 1
    layers = question.architecture.layers
    if layers % pp:
        return next((chunks for chunks in INTERLEAVINGS if layers // (pp * chunks) > 1), 1)
    return next((chunks for chunks in INTERLEAVINGS if layers // pp % chunks == 0), 1)


def tensor_degrees(question: Question) -> list[int]:
    """Tensor-parallel degrees that stay on one fast link and fall on whole parts of a node."""
    node, domain = question.gpu.gpus_per_node, question.gpu.scale_up_domain
    most = max(node, domain)
    placed = [tp for tp in range(1, most + 1) if node % tp == 0 or tp % node == 0]
    return _open(question, "tp", placed)


def pipeline_degrees(question: Question) -> list[int]:
    """Pipeline degrees into which the layers split evenly (or as `stage_layers` says).

    Deep models whose layers not even four stages can share (61, 94, 126) get near-even splits over powers of two.
    """
    layers, vpp = question.architecture.layers, question.vpp or 1
    if question.stage_layers is not None:
        return [question.pp or len(question.stage_layers) // vpp]
    even = [pp for pp in range(1, min(layers, MOST_PP) + 1) if layers % (pp * vpp) == 0]
    degrees = _open(question, "pp", [pp for pp in even if pp > 1 or vpp == 1])
    awkward = layers > DEEP and layers % UNEVEN_DEGREES[0] and vpp == 1
    if question.pp is not None or not awkward or "pp" not in question.stack.degrees or question.architecture.encoder:
        return degrees
    return sorted({*degrees, *(pp for pp in UNEVEN_DEGREES if layers // pp > 1)})


def context_degrees(question: Question) -> list[int]:
    """Context-parallel degrees: every rank takes two equal slices of the sequence, an early and a late one."""
    sequence = question.run.sequence_length
    return _open(question, "cp", [cp for cp in CONTEXT_DEGREES if cp == 1 or sequence % (2 * cp) == 0])


def expert_degrees(question: Question) -> list[int]:
    """Expert-parallel degrees that spread the experts evenly."""
    moe = question.architecture.moe
    return _open(question, "ep", [ep for ep in range(1, moe.experts + 1) if moe.experts % ep == 0] if moe else [1])


def expert_tensor_degrees(question: Question) -> list[int]:
    """Ways to split a single expert: what is asked, or whatever divides its width and a tensor-parallel degree."""
    moe = question.architecture.moe
    if question.etp is not None or moe is None:
        return [question.etp or 1]
    splits = tensor_degrees(question)
    return [etp for etp in range(1, max(splits) + 1)
            if moe.ffn_size % etp == 0 and any(tp % etp == 0 for tp in splits)]  # fmt: skip


def _open(question: Question, name: str, degrees: Iterable[int]) -> list[int]:
    """The one degree that is asked for, or those that stack and model allow."""
    fixed = getattr(question, name)
    if fixed is not None:
        return [fixed]
    return [degree for degree in degrees if degree == 1 or not _refused(question, name, degree)]


def _refused(question: Question, name: str, degree: int) -> bool:
    """Whether `degree` is impossible by itself. Enough ranks are given, so that only its own rule can refuse it."""
    alone = replace(Layout(dp=degree if name == "ep" else 1, shard=question.stack.shards[0]), **{name: degree})  # type: ignore[arg-type]
    return any(error.pointer == f"/{name}" for error in refusals(question, alone))


def families(question: Question) -> Table:
    """Every choice of the degrees but dp, with every micro-batch that is open; dp is 1 and variants are left at 0.

    Experts may be split over any divisor of tp.
    """
    tp, pp, cp, ep, micro_batch, etp = product(
        tensor_degrees(question), pipeline_degrees(question), context_degrees(question), expert_degrees(question),
        micro_batch_sizes(question), expert_tensor_degrees(question),
    )  # fmt: skip
    one, zero = np.ones_like(tp), np.zeros_like(tp)
    every = Table(
        tp=tp, pp=pp, vpp=one, cp=cp, ep=ep, etp=etp, dp=one, micro_batch=micro_batch, shard=zero,
        shard_degree=np.full_like(tp, WHOLE), recompute=zero,
    )  # fmt: skip
    return every if question.etp is not None else every.take(tp % etp == 0)


def replicas(question: Question, family: Table, gpus: Column) -> Column:
    """dp of every family (rows) on every count (columns); 0 where the family cannot use that count."""
    ranks, places = np.unique(family.tp * family.pp * family.cp, return_inverse=True)
    whole = gpus[None, :] // ranks[:, None]
    whole = np.where(whole * ranks[:, None] == gpus[None, :], whole, 0)
    if question.dp is not None:
        whole = np.where(whole == question.dp, whole, 0)
    dp: Column = whole[places]
    if question.global_batch is not None:
        sizes, of = np.unique(family.micro_batch, return_inverse=True)
        step = np.maximum(whole[None] * sizes[:, None, None], 1)
        dp = np.where((question.global_batch % step == 0)[of, places], dp, 0)
    if question.architecture.moe is not None:
        # tp·cp·dp ranks of a pipeline stage hold the experts: ep·etp must divide them
        pairs, of = np.unique(np.stack([family.pp, family.ep * family.etp]), axis=1, return_inverse=True)
        dp = np.where((gpus[None, :] // pairs[0][:, None] % pairs[1][:, None] == 0)[of], dp, 0)
    return dp


class Variants(NamedTuple):
    """Layouts with their variants filled in; `of` says which of the given layouts each one came from."""

    layouts: Table
    of: Column

    def take(self, rows: Column | Mask) -> Variants:
        return Variants(self.layouts.take(rows), self.of[rows])


def crossed(question: Question, layouts: Table, levels: tuple[int, ...], *, interleave: bool) -> Variants:
    """Every layout with every level of sharding in `levels`, every recompute policy and interleaving that is open."""
    policies = len(recomputes(question))
    of = np.repeat(np.arange(len(layouts), dtype=np.int64), len(levels) * policies)
    shard = np.tile(np.repeat(np.asarray(levels, dtype=np.int64), policies), len(layouts))
    recompute = np.tile(np.arange(policies, dtype=np.int64), len(layouts) * len(levels))
    vpp = np.full_like(shard, question.vpp or 1)
    every = Variants(replace(layouts.take(of), shard=shard, recompute=recompute, vpp=vpp), of)
    if question.stack.name == "deepspeed":
        every = every.take((every.layouts.pp == 1) | (shard <= SHARD_LEVEL["optimizer"]))
    return _interleaved(question, every) if interleave and question.vpp is None else every


def unsharded_alone(layouts: Table) -> Table:
    """One data-parallel rank has nothing to shard: its level is 0."""
    return replace(layouts, shard=np.where(layouts.dp * layouts.cp == 1, 0, layouts.shard))


def variants(question: Question, layouts: Table, levels: tuple[int, ...], *, interleave: bool) -> Variants:
    """Every variant of layouts whose dp is known; one data-parallel rank appears once, unsharded."""
    every = crossed(question, layouts, levels, interleave=interleave)
    alone = every.layouts.dp * every.layouts.cp == 1
    kept = every.take(~alone | (every.layouts.shard == levels[0]))
    return Variants(unsharded_alone(kept.layouts), kept.of)


def _interleaved(question: Question, every: Variants) -> Variants:
    """The layouts, and those with a pipeline once more with several chunks a stage."""
    degrees, places = np.unique(every.layouts.pp, return_inverse=True)
    chunks = np.asarray([interleaving(question, int(pp)) for pp in degrees], dtype=np.int64)[places]
    several = chunks > 1
    if question.stack.name == "megatron":  # its interleaved schedule runs micro-batches in whole rounds of pp
        count = micro_batches(question, every.layouts.dp, every.layouts.pp, every.layouts.micro_batch)
        several &= count % every.layouts.pp == 0
    more = replace(every.layouts, vpp=chunks).take(several)
    return Variants(stacked([every.layouts, more]), np.concatenate([every.of, every.of[several]]))
