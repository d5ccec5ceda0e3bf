"""The sizing request: what was asked, nothing assumed.

One attribute per key of the vocabulary; None means that the key was not given. Defaults are the engine's business,
because an answer says which of its inputs were assumed. Attributes are checked by `service.requests.schemas`; names of
models and GPUs are still to be resolved against the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

#: A value that the recommender is asked to choose.
Auto = Literal["auto"]
Degree = int | Auto


@dataclass(frozen=True, slots=True)
class FullLayers:
    """`recompute = {"full_layers": n}`: only that many decoder layers are recomputed."""

    full_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRequest:
    """One question. Lengths are in tokens, batches in sequences, `margin` and rates are shares of one."""

    model: str | Mapping[str, Any]
    sequence_length: int | None = None
    micro_batch: int | Auto | None = None
    global_batch: int | None = None
    gpu: str | Mapping[str, Any] | tuple[str | Mapping[str, Any], ...] | None = None
    gpus: int | None = None
    method: str | None = None
    lora_rank: int | None = None
    lora_targets: str | tuple[str, ...] | None = None
    precision: str | None = None
    optimizer: str | None = None
    gradient_dtype: str | None = None
    stack: str | None = None
    attention: str | None = None
    loss: str | None = None
    recompute: str | FullLayers | None = None
    compile: bool | None = None
    tp: Degree | None = None
    sp: bool | None = None
    pp: Degree | None = None
    vpp: int | None = None
    cp: Degree | None = None
    ep: Degree | None = None
    etp: int | None = None
    dp: Degree | None = None
    shard: str | None = None
    shard_degree: int | None = None
    offload: tuple[str, ...] | None = None
    margin: float | None = None
    goal: str | None = None
    tokens: int | None = None
    solve: str | None = None
    command: str | None = None
    # Further request keys: most people never say these.
    stage: int | None = None
    stage_layers: tuple[int, ...] | None = None
    pipeline_schedule: str | None = None
    vocab_multiple: int | None = None
    cp_comm: str | None = None
    recompute_modules: tuple[str, ...] | None = None
    kernels: tuple[str, ...] | None = None
    logits_dtype: str | None = None
    residual_dtype: str | None = None
    base_weights: str | None = None
    adapter_dtype: str | None = None
    lora_dropout: float | None = None
    optimizer_impl: str | None = None
    moments_dtype: str | None = None
    master_dtype: str | None = None
    fp8_recipe: str | None = None
    fp8_params: bool | None = None
    bf16_layers: tuple[int, int] | None = None
    fsdp_version: int | None = None
    reshard_after_forward: bool | None = None
    moe_dispatcher: str | None = None
    moe_capacity: float | None = None
    moe_balanced: bool | None = None
    microbatch_group: int | None = None
    cuda_graphs: bool | None = None
    deterministic: bool | None = None
    partition_activations: bool | None = None
    allocator: str | None = None
    offload_fraction: float | None = None
    #: the flat JSON object as the caller sent it (the answer's `request`); two requests that mean the same are equal
    as_asked: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def given(self) -> dict[str, Any]:
        """The keys that were given, with their values, in the order of the vocabulary (without `command`)."""
        values = ((name, getattr(self, name)) for name in KEY_NAMES if name != "command")
        return {name: value for name, value in values if value is not None}


#: The JSON names of every key, in the order in which people are told about them.
KEY_NAMES: tuple[str, ...] = tuple(entry.name for entry in fields(SizingRequest) if entry.name != "as_asked")
