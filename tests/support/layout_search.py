"""Random questions over small models, and the answer by brute force: every layout sized one by one.

Nothing of `service.engine.search` is used here, so that the search and this enumeration can only agree by being right.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from service.engine.architecture import Architecture, LatentAttention, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.question import Plan, Question, plan, refusals
from service.engine.run import Recompute, Run
from service.engine.stacks import STACKS, RecipeRequest
from service.engine.step_time import of_plan

GIB = 1 << 30
MOST_GPUS = 16
NODE = 4


@dataclass(frozen=True)
class Truth:
    """The smallest count that fits and the least seconds per token on it (None: no count up to 16 fits)."""

    minimum_gpus: int | None
    seconds_per_token: float | None
    sized: int


def gpu(memory_bytes: int) -> Gpu:
    """A device with four to a node and any memory."""
    return Gpu(
        id="small", name="Small", vendor="NVIDIA", memory_bytes=memory_bytes, gpus_per_node=NODE, scale_up_domain=NODE,
        architecture="Hopper", compute_capability="9.0", dense_tflops={"bf16": 100.0}, memory_gb_s=1000.0,
        interconnect_gb_s=300.0,
    )  # fmt: skip


def random_question(rng: random.Random) -> Question:
    """A small dense or mixture model, any stack, a GPU that a few of them may or may not be enough for."""
    stack = STACKS[rng.choice(sorted(STACKS))]
    architecture = random_model(rng)
    run = Run(
        sequence_length=rng.choice([1024, 4096, 8192]), loss=stack.loss, kernels=stack.kernels,
        optimizer_impl=stack.optimizer_impl, fsdp_version=stack.fsdp_version, cp_comm=stack.cp_comm,
    )  # fmt: skip
    bound: dict[str, Any] = {}
    if rng.random() < 0.3:
        bound["recompute"] = Recompute(kind=rng.choice(stack.recomputes))  # type: ignore[arg-type]
    if rng.random() < 0.3:
        bound["shard"] = rng.choice(stack.shards)
    if rng.random() < 0.3:
        bound["global_batch"] = rng.choice([8, 12, 16])
    if rng.random() < 0.2:
        bound[rng.choice(["tp", "pp", "cp"])] = 1
    return Question(
        architecture=architecture,
        stack=stack,
        gpu=gpu(int(rng.uniform(1.5, 7) * GIB)),
        recipe=RecipeRequest(optimizer=rng.choice(["adamw", "adamw-8bit", "sgd"])),
        run=run,
        micro_batch=rng.choice([1, 2]),
        **bound,
    )


def random_model(rng: random.Random) -> Architecture:
    """Four or six layers, 0.1 to 1 × 10^9 parameters; every third a mixture, some with latent attention."""
    hidden, layers = rng.choice([1024, 1536, 2048]), rng.choice([4, 6])
    dense = Architecture(
        layers=layers, hidden_size=hidden, heads=8, kv_heads=rng.choice([2, 4, 8]), head_dim=hidden // 8,
        ffn_size=4 * hidden, vocab_size=rng.choice([8_000, 32_000, 64_001]), max_positions=8192,
        tied_embeddings=rng.random() < 0.3,
    )  # fmt: skip
    if rng.random() < 0.65:
        return dense
    moe = MixtureOfExperts(experts=4, top_k=2, ffn_size=hidden, first_dense_layers=rng.choice([0, 1, layers // 2]))
    if rng.random() < 0.5:
        return replace(dense, moe=moe)
    mla = LatentAttention(kv_lora_rank=128, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, q_lora_rank=256)
    return replace(dense, moe=moe, mla=mla, kv_heads=8, head_dim=96)


def layouts(question: Question, gpus: int) -> Iterator[Plan]:
    """Every layout of exactly `gpus` GPUs that obeys model, stack and node, one by one."""
    stack, moe = question.stack, question.architecture.moe
    degrees = range(1, gpus + 1)
    recomputes = [question.recompute] if question.recompute else [Recompute(kind=k) for k in stack.recomputes]  # type: ignore[arg-type]
    for tp, pp, cp in itertools.product(degrees, repeat=3):
        if gpus % (tp * pp * cp) or tp > NODE or NODE % tp or _bound(question, tp=tp, pp=pp, cp=cp):
            continue
        if cp > 1 and (question.run.sequence_length % (2 * cp) or cp & (cp - 1)):
            continue
        dp, micro_batch = gpus // (tp * pp * cp), question.micro_batch or 1
        if question.global_batch is not None and question.global_batch % (dp * micro_batch):
            continue
        experts = [ep for ep in degrees if moe and moe.experts % ep == 0] if "ep" in stack.degrees and moe else [1]
        splits = [etp for etp in range(1, tp + 1) if tp % etp == 0] if moe else [1]
        shards = [question.shard] if question.shard else stack.shards
        for ep, etp, shard, recompute in itertools.product(experts, splits, shards, recomputes):
            for vpp in interleavings(question, pp):
                made = plan(
                    question, tp=tp, pp=pp, cp=cp, ep=ep, etp=etp, dp=dp, vpp=vpp, shard=shard, recompute=recompute,
                    micro_batch=micro_batch,
                )  # fmt: skip
                rounds = vpp == 1 or question.stack.name != "megatron" or int(made.run.micro_batches) % pp == 0
                if rounds and not any(refusals(question, made.layout)):
                    yield made


def _bound(question: Question, **degrees: int) -> bool:
    """Whether a degree is not the one that the question fixes."""
    return any(getattr(question, name) not in (None, degree) for name, degree in degrees.items())


def interleavings(question: Question, pp: int) -> list[int]:
    """One chunk a stage, and every number of chunks that divides its layers."""
    per_stage = question.architecture.layers // pp
    if pp == 1 or question.stack.name == "deepspeed":
        return [1]
    return [chunks for chunks in range(1, per_stage + 1) if per_stage % chunks == 0]


def truth(question: Question) -> Truth:
    """The smallest count that fits, and the least seconds per token of the layouts that fit on it."""
    sized = 0
    for gpus in [1, 2, *range(NODE, MOST_GPUS + 1, NODE)]:
        best = None
        for made in layouts(question, gpus):
            sized += 1
            if made.size().fits:
                timed = of_plan(made)
                assert timed is not None
                seconds = float(timed.seconds_per_token[0])
                best = seconds if best is None else min(best, seconds)
        if best is not None:
            return Truth(gpus, best, sized)
    return Truth(None, None, sized)
