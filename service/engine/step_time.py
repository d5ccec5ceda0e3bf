"""How long a step takes: floating-point operations, memory traffic and communication of a table of layouts.

    step = micro-batches × slowest stage × (1 + bubble) + gathers and reductions beyond what hides them + optimizer

A few named quantities (`calibration`) fitted to published throughput; times are float64 seconds with an interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.engine import calibration as c
from service.engine.architecture import layer_kinds
from service.engine.elementwise import ceil_div
from service.engine.flops import model_flops, work
from service.engine.layout import SHARD_LEVEL
from service.engine.parameters import parameter_groups
from service.engine.question import Plan, Question, micro_batches
from service.engine.run import Recompute
from service.engine.search.space import recomputes
from service.engine.search.table import WHOLE, Table, of_layout

Floats = NDArray[np.float64]
#: forward passes over the attention kernel's five products against two (FlashAttention, arXiv:2205.14135)
ATTENTION_BACKWARD = 2.5


class Times(NamedTuple):
    """Per layout: seconds of a step, tokens of a step, model FLOPs utilisation (0 … 1)."""

    step_s: Floats
    tokens: Floats
    mfu: Floats

    @property
    def seconds_per_token(self) -> Floats:
        return self.step_s / self.tokens


def interval(question: Question) -> tuple[float, float]:
    """Factors around a predicted step time that hold about four of five runs."""
    found = c.CALIBRATION.get(question.gpu.architecture or "", c.OTHER)
    return c.INTERVAL if found.measured and question.recipe.method == "full" else c.WIDE_INTERVAL


def peak_flops(question: Question) -> float | None:
    """Dense peak in the precision that matrix products run in, FLOP/s; None where nobody knows it.

    fp32 is what PyTorch does unless told otherwise: no TF32.
    """
    named = {"fp8": "fp8", "fp16": "fp16", "fp16-mixed": "fp16", "fp32": "fp32"}
    figures, wanted = question.gpu.dense_tflops, named.get(question.recipe.precision, "bf16")
    figure = figures.get(wanted) or (figures.get("bf16") if wanted == "fp8" else None)
    if figure is None and wanted == "bf16" and not question.gpu.has_bf16:
        figure = figures.get("fp16")
    return figure * 1e12 if figure else None


def times(question: Question, layouts: Table) -> Times | None:
    """Step time of every layout of a table; None when the device's speed is not known."""
    peak = peak_flops(question)
    return None if peak is None else _Steps(question, layouts, peak).times()


def of_plan(made: Plan) -> Times | None:
    """Step time of one plan."""
    question = replace(made.question, recompute=made.run.recompute)
    return times(question, of_layout(made.layout, int(made.run.micro_batch)))


def recomputed(policy: Recompute, question: Question) -> tuple[float, float]:
    """How much of the forward's linear and attention work a policy does again.

    torchtitan's operator policy repeats every second product; Megatron's modules by their part of a layer's FLOPs.
    """
    if policy.kind == "full":
        layers = question.architecture.layers
        share = 1.0 if policy.full_layers is None else min(policy.full_layers / layers, 1.0)
        return share, share
    if policy.kind == "none":
        return 0.0, 0.0
    if question.stack.name == "torchtitan":
        return 0.5, 0.0
    heavy = {"mlp": 0.6, "moe": 0.8, "shared_experts": 0.1, "mla_up_proj": 0.1}
    linear = sum(heavy.get(name, 0.03) for name in policy.modules if name != "core_attn")
    return linear, 1.0 if "core_attn" in policy.modules or not policy.modules else 0.0


class _Steps:
    """The parts of a step, one float per layout."""

    def __init__(self, question: Question, layouts: Table, peak: float) -> None:
        self.question, self.gpu, self.layouts, self.peak = question, question.gpu, layouts, peak
        self.architecture, self.stack = question.architecture, question.stack
        self.share = c.CALIBRATION.get(self.gpu.architecture or "", c.OTHER)
        half = self.gpu.dense_tflops.get("bf16") or self.gpu.dense_tflops.get("fp16")
        self.peak16 = min(half * 1e12, peak) if half else peak
        sequence = question.run.sequence_length
        self.work = work(self.architecture, sequence, question.run.attention != "eager")
        self.tp, self.pp, self.vpp, self.cp, self.ep, self.etp, self.dp = (
            column.astype(np.float64)
            for column in (layouts.tp, layouts.pp, layouts.vpp, layouts.cp, layouts.ep, layouts.etp, layouts.dp)
        )
        count = micro_batches(question, layouts.dp, layouts.pp, layouts.micro_batch)
        self.count: Floats = np.asarray(count, dtype=np.float64)
        #: sequences and tokens that a rank runs in one micro-batch
        self.micro_batch: Floats = layouts.micro_batch.astype(np.float64)
        self.tokens: Floats = self.micro_batch * sequence / self.cp
        shares = np.asarray([recomputed(policy, question) for policy in recomputes(question)])
        self.again: Floats = shares[layouts.recompute, 0]
        self.again_attention: Floats = shares[layouts.recompute, 1]
        #: passes over a linear layer: forward, two products in backward (one where weights are frozen), recomputation
        self.passes: Floats = 1.0 + (1.0 if question.recipe.method != "full" else 2.0) + self.again

    def times(self) -> Times:
        compute = (self.layers_s() * self.largest_stage() + self.head_s()) * self.count
        data, cover = self.data_s(), c.DATA_OVERLAP * compute
        shown = np.maximum(data - cover, 0) + c.DATA_FRICTION * np.minimum(data, cover)
        step = compute * (1 + (self.pp - 1) / (self.count * self.vpp)) + shown + self.optimizer_s()
        sequence = self.question.run.sequence_length
        tokens = self.micro_batch * self.count * self.dp * sequence
        gpus = self.tp * self.pp * self.cp * self.dp
        step = step * (1 + c.SCALE_FRICTION * np.log2(np.maximum(gpus / self.gpu.gpus_per_node, 1)))
        return Times(step, tokens, model_flops(self.architecture, sequence) * tokens / (step * gpus * self.peak))

    def largest_stage(self) -> Floats:
        """Part of the layers on the stage that has most of them."""
        asked, layers = self.question.stage_layers, self.architecture.layers
        if asked is None:
            chunks = self.layouts.pp * self.layouts.vpp
            most = self.layouts.vpp * (layers // chunks) + ceil_div(layers % chunks, self.layouts.pp)
            return np.asarray(most / layers, dtype=np.float64)
        stages = len(asked) // (self.question.vpp or 1)
        return np.full_like(self.pp, max(sum(asked[rank::stages]) for rank in range(stages)) / sum(asked))

    def layers_s(self) -> Floats:
        """All layers over one micro-batch, forward and backward, on one tensor- and context-parallel rank."""
        attention = self.attention_s()
        return (
            self.products_s() + attention + self.elementwise_s() + c.LAYER_S * self.architecture.layers
            + self.tensor_s() + self.context_s(attention) + self.expert_s()
        )  # fmt: skip

    def rate(self, width: Floats) -> Floats:
        """FLOP/s of products of this micro-batch whose local width is `width`: small ones fill the device less."""
        filled = self.tokens / (self.tokens + c.HALF_RATE_TOKENS) * width / (width + c.HALF_RATE_WIDTH)
        return self.peak * self.share.matmul * filled

    def products_s(self) -> Floats:
        width = (self.architecture.ffn_size or self.architecture.hidden_size) / self.tp
        total = self.work.dense / self.rate(width)
        if self.architecture.moe is not None:
            total = total + self.work.routed / self.rate(self.architecture.moe.ffn_size / self.etp)
        return self.tokens / self.tp * self.passes * total

    def attention_s(self) -> Floats:
        share = self.share.attention_te if self.stack.fused_mlp else self.share.attention
        passes = 1 + ATTENTION_BACKWARD + self.again_attention
        return self.tokens / self.tp * passes * self.work.attention / (self.peak16 * share)

    def head_s(self) -> Floats:
        """Head and loss over one micro-batch; the last stage has them beside its layers."""
        return self.tokens / self.tp * 3 * self.work.head / (self.peak16 * self.share.matmul)

    def elementwise_s(self) -> Floats:
        if self.gpu.memory_gb_s is None:
            return np.zeros_like(self.tokens)
        split = self.question.sp if self.question.sp is not None else self.stack.sequence_parallel
        stream = self.work.stream / (self.tp if split else 1.0)
        passes = c.ELEMENTWISE_PASSES * (1.0 if self.question.run.compile or self.stack.fused_mlp else c.UNFUSED)
        moved = 2 * self.tokens * (stream + self.work.local / self.tp) * passes * (1 + self.again / 3)
        return moved / (self.gpu.memory_gb_s * 1e9 * c.MEMORY_SHARE)

    def tensor_s(self) -> Floats:
        """Gathers and scatters of the residual stream around attention and MLP: four in forward, six in backward."""
        size = 2 * self.tokens * self.architecture.hidden_size * (self.tp - 1) / self.tp
        moved = self.architecture.layers * (10 + 2 * self.again) * size
        return c.EXPOSED_TENSOR * moved / self.link(self.tp)

    def context_s(self, attention: Floats) -> Floats:
        """Keys and values around the ring, and their gradients back."""
        mla = self.architecture.mla is not None
        width = 2 * (self.architecture.query_width if mla else self.architecture.kv_width)
        moved = 3 * 2 * self.tokens * width / self.tp * (self.cp - 1) * self.architecture.layers
        moving = moved / self.link(self.cp, self.tp)
        return np.maximum(moving - attention, 0) + c.EXPOSED_CONTEXT * np.minimum(moving, attention)

    def expert_s(self) -> Floats:
        """Dispatch and combine of the routed tokens, forward and backward."""
        moe = self.architecture.moe
        if moe is None:
            return np.zeros_like(self.tokens)
        layers = sum(len(kind.positions) for kind in layer_kinds(self.architecture) if kind.mlp == "moe")
        size = 2 * self.tokens / self.tp * self.architecture.hidden_size * moe.top_k
        moved = layers * 4 * size * (self.ep - 1) / self.ep
        return c.EXPOSED_EXPERT * moved / self.link(self.ep * self.etp)

    def data_s(self) -> Floats:
        """Gathers of parameters and reduction of gradients over the data-parallel ranks, for one step."""
        level, groups = self.layouts.shard, parameter_groups(self.architecture)
        held = (groups.count - groups.routed_count) / (self.tp * self.pp)
        held = held + groups.routed_count / (self.ep * self.etp * self.pp)
        ranks = self.dp * self.cp
        near: Floats = np.minimum(np.where(self.layouts.shard_degree == WHOLE, ranks, self.layouts.shard_degree), ranks)
        parameters = level == SHARD_LEVEL["parameters"]
        each_batch = np.where(self.pp > 1, 1.0, 2.0 * self.count)
        gathers = np.where(parameters, each_batch, np.where(level > 0, 1.0, 0.0))
        gathered = 2.0 * held * gathers * (near - 1) / near
        size = 0.0 if self.question.recipe.method != "full" else 4.0 if self.stack.gradient_dtype == "fp32" else 2.0
        reduced = size * held * np.where(level > 0, 1.0, 2.0) * (ranks - 1) / ranks
        return gathered / self.data_link(near) + reduced / self.data_link(ranks)

    def optimizer_s(self) -> Floats:
        """Reading and writing the state that this rank updates."""
        if self.gpu.memory_gb_s is None or self.question.recipe.method != "full":
            return np.zeros_like(self.tokens)
        split = np.where(self.layouts.shard > 0, self.dp * self.cp, 1.0)
        held = parameter_groups(self.architecture).count / (self.tp * self.pp * split)
        return held * c.OPTIMIZER_TRAFFIC / (self.gpu.memory_gb_s * 1e9 * c.MEMORY_SHARE)

    def link(self, ranks: Floats, apart: Floats | float = 1.0) -> Floats:
        """One-way bytes a second within a group of `ranks` GPUs that lie `apart` GPUs from each other."""
        one_way = (self.gpu.interconnect_gb_s or c.PCIE_GB_S) / 2 * 1e9
        fast = one_way * c.LINK_SHARE
        network = min(self.share.network_gb_s * 1e9 * c.LINK_SHARE, fast)
        reach, domain = ranks * apart, self.gpu.scale_up_domain
        in_node = min(one_way * c.PCIE_SHARE, fast)
        return np.where(reach <= domain, fast, np.where(reach <= self.gpu.gpus_per_node, in_node, network))

    def data_link(self, ranks: Floats) -> Floats:
        """The same for a ring over data-parallel ranks, which lie tp apart: those of one node share its NICs, and what
        is gathered crosses into a node once."""
        beside = np.minimum(np.maximum(self.gpu.gpus_per_node // self.tp, 1), ranks)
        fast = (self.gpu.interconnect_gb_s or c.PCIE_GB_S) / 2 * 1e9 * c.LINK_SHARE
        across = np.minimum(self.share.network_gb_s * 1e9 * c.LINK_SHARE * beside, fast)
        return np.maximum(self.link(ranks, self.tp), across)
