"""The shape and the switches of one run: what decides activations once model and layout are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from service.engine.elementwise import Int

Attention = Literal["flash", "sdpa", "eager"]
Loss = Literal["full", "chunked", "fused", "vocab-parallel"]
RecomputeKind = Literal["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """What backward computes again. `full_layers` limits `full` to so many layers of the model; `modules` says what
    `selective` recomputes (empty: the stack's own meaning)."""

    kind: RecomputeKind = "none"
    full_layers: int | None = None
    modules: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        if self.full_layers is not None:
            return f"full:{self.full_layers}"
        return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `micro_batch` sequences of `sequence_length` tokens per rank; `micro_batches` of them make a step."""

    sequence_length: int
    micro_batch: Int = 1
    micro_batches: Int = 1
    attention: Attention = "flash"
    loss: Loss = "full"
    recompute: Recompute = Recompute()
    compile: bool = False
    kernels: frozenset[str] = frozenset()
    logits_dtype: str = "fp32"
    residual_dtype: str | None = None
    pipeline_schedule: str = "1f1b"
    microbatch_group: Int | None = None
    cp_comm: str = "p2p"
    vocab_multiple: Int | None = None
    optimizer_impl: str = "fused"
    fsdp_version: int = 2
    #: None: parameters are split up again between forward and backward, except under a pipeline
    reshard_after_forward: bool | None = None
    moe_dispatcher: str = "all-to-all"
    moe_capacity: float | None = None
    moe_balanced: bool = False
    #: token copies on the fullest expert-parallel rank, in thousandths of the even share (dropless routing)
    routing_skew_permille: int = 1000
    fp8_recipe: str | None = None
    fp8_params: bool = False
    bf16_layers: tuple[int, int] = (0, 0)
    partition_activations: bool = False
    deterministic: bool = False
    cuda_graphs: bool = False
    allocator: str = "default"
    offload: frozenset[str] = frozenset()
    offload_fraction: float = 1.0
    lora_dropout: float = 0.0
