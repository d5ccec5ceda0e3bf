"""What differs between training stacks: which state they keep, which kernels run, which layouts they know.

A stack is data over the same rows; no formula is written here. The state table is the contract's ("What a stack sets"),
kernel habits come from the sources named beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from service.engine.layout import SHARDS, Shard
from service.engine.recipe import Method, Recipe

StackName = Literal["reference", "huggingface", "torchtitan", "megatron", "deepspeed"]

ALL_DEGREES = frozenset({"tp", "pp", "cp", "ep", "dp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One training stack. `gradients_persist`: gradient buffers are allocated once and never freed; otherwise a first
    micro-batch finds none and they appear during backward."""

    name: StackName
    stands_for: str
    gradient_dtype: str
    shard: Shard
    loss: str
    sequence_parallel: bool
    degrees: frozenset[str]
    shards: tuple[Shard, ...] = SHARDS
    gradients_persist: bool
    kernels: frozenset[str] = frozenset()
    optimizer_impl: str = "fused"
    fsdp_version: int = 1
    cp_comm: str = "p2p"
    vocab_multiple_per_tp: int | None = None
    fused_norm: bool
    fused_mlp: bool
    #: what `recompute: auto` may choose, least first
    recomputes: tuple[str, ...] = ("none", "selective", "full")


MEGATRON_KERNELS = frozenset({"te", "wgrad-accumulation", "softmax", "gelu", "swiglu", "rope"})

STACKS: Mapping[str, Stack] = {
    stack.name: stack
    for stack in (
        Stack(
            name="reference",
            stands_for="the textbook: classic recipe, state resident through the whole step, fused kernels",
            gradient_dtype="bf16",
            shard="parameters",
            loss="full",
            sequence_parallel=True,
            degrees=ALL_DEGREES,
            gradients_persist=True,
            fsdp_version=2,
            fused_norm=True,
            fused_mlp=True,
        ),
        Stack(
            name="huggingface",
            stands_for="Transformers with Trainer, Accelerate or TRL; FSDP1 when it shards",
            gradient_dtype="fp32",
            shard="parameters",
            loss="full",
            sequence_parallel=False,
            degrees=frozenset({"cp", "dp"}),
            gradients_persist=False,
            optimizer_impl="foreach",
            fused_norm=False,
            fused_mlp=False,
            recomputes=("none", "full"),
        ),
        Stack(
            name="torchtitan",
            stands_for="torchtitan with FSDP2",
            gradient_dtype="fp32",
            shard="parameters",
            loss="full",
            sequence_parallel=True,
            degrees=ALL_DEGREES,
            gradients_persist=False,
            fsdp_version=2,
            cp_comm="all-gather",
            fused_norm=True,
            fused_mlp=False,
        ),
        Stack(
            name="megatron",
            stands_for="Megatron-core with Transformer Engine",
            gradient_dtype="fp32",
            shard="optimizer",
            loss="vocab-parallel",
            sequence_parallel=True,
            degrees=ALL_DEGREES,
            shards=("none", "optimizer"),
            gradients_persist=True,
            kernels=MEGATRON_KERNELS,
            vocab_multiple_per_tp=128,
            fused_norm=True,
            fused_mlp=True,
        ),
        Stack(
            name="deepspeed",
            stands_for="ZeRO around Hugging Face code; with vocab_multiple, Megatron-DeepSpeed code",
            gradient_dtype="bf16",
            shard="parameters",
            loss="full",
            sequence_parallel=False,
            degrees=ALL_DEGREES,
            gradients_persist=True,
            fused_norm=False,
            fused_mlp=False,
            recomputes=("none", "full"),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRequest:
    """The keys of a request that decide the recipe; None takes what the stack does."""

    precision: str = "bf16-mixed"
    optimizer: str = "adamw"
    method: Method = "full"
    gradient_dtype: str | None = None
    master_dtype: str | None = None
    moments_dtype: str | None = None
    base_weights: str | None = None
    adapter_dtype: str = "fp32"
    lora_rank: int = 16
    lora_targets: tuple[str, ...] = ()


def recipe(stack: Stack, asked: RecipeRequest, *, sharded: bool) -> Recipe:
    """The dtypes that `stack` keeps for what was asked; `sharded` says whether parameters are split (ZeRO-3, FSDP).

    The rows of the contract's table, one branch each; keys that the request gives win.
    """
    made = _stack_dtypes(stack, asked.precision, sharded)
    if asked.gradient_dtype is not None:
        made = replace(made, gradients=_gradients(stack, made, asked.gradient_dtype))
    if asked.master_dtype is not None and made.master is not None:
        made = replace(made, master=asked.master_dtype)
    moments = asked.moments_dtype or made.master or made.weights
    made = replace(made, optimizer=asked.optimizer, moments=moments)
    if asked.method == "full":
        return made
    base = asked.base_weights or ("bf16" if asked.method == "lora" else "nf4-dq")
    return replace(
        made,
        method=asked.method,
        base_weights=base,
        adapter_dtype=asked.adapter_dtype,
        lora_rank=asked.lora_rank,
        lora_targets=asked.lora_targets,
        weights=asked.adapter_dtype,
        gradients=(asked.adapter_dtype,),
        master=None,
        moments=asked.moments_dtype or asked.adapter_dtype,
    )


def _gradients(stack: Stack, made: Recipe, asked: str) -> tuple[str, ...]:
    """Gradient buffers when their dtype is asked for. DeepSpeed's bf16 optimizer accumulates in fp32 beside the 16-bit
    gradients (runtime/bf16_optimizer.py); Megatron's fp16 optimizer copies to fp32 (optimizer/optimizer.py)."""
    if stack.name == "megatron" and made.gradients == (asked, "fp32"):
        return made.gradients
    two_buffers = stack.name == "deepspeed" and made.master is not None and asked != made.compute
    return (made.compute, asked) if two_buffers else (asked,)


def _stack_dtypes(stack: Stack, precision: str, sharded: bool) -> Recipe:
    if precision == "fp32":
        return _made(precision, "fp32", "fp32", ("fp32",), None)
    if precision in ("bf16", "fp16"):
        return _made(precision, precision, precision, (precision,), None)
    half = "fp16" if precision == "fp16-mixed" else "bf16"
    amp = precision == "amp" or (stack.name == "huggingface" and not sharded)
    if amp:
        return _made(precision, half, "fp32", ("fp32",), None, casts=True)
    if stack.name in ("huggingface", "torchtitan"):
        return _made(precision, half, "fp32", ("fp32",), None, casts=True)
    if stack.name == "megatron":
        return _made(precision, half, half, ("fp32",) if half == "bf16" else ("fp16", "fp32"), "fp32")
    return _made(precision, half, half, (half,), "fp32")


def _made(
    precision: str, compute: str, weights: str, gradients: tuple[str, ...], master: str | None, *, casts: bool = False
) -> Recipe:
    return Recipe(
        precision=precision,
        compute=compute,
        weights=weights,
        gradients=gradients,
        master=master,
        moments=master or weights,
        casts=casts,
    )
