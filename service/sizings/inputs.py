"""Every input of a sizing with where it came from: said in the request, or assumed and by whom."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.stacks import STACKS, Stack
from service.requests.request import SizingRequest

Source = Literal["request", "default", "stack", "model", "gpu", "derived", "solved"]

#: What is taken when the key is absent, whatever the stack (contract, section 1).
DEFAULTS: dict[str, Any] = {
    "micro_batch": 1,
    "global_batch": None,
    "gpus": None,
    "method": "full",
    "optimizer": "adamw",
    "stack": "reference",
    "attention": "flash",
    "compile": False,
    "offload": [],
    "margin": 0.05,
    "goal": "gpus",
    "tokens": None,
    "solve": None,
    "stage": None,
    "stage_layers": None,
    "vpp": None,
    "shard_degree": None,
    "pipeline_schedule": "1f1b",
    "recompute_modules": None,
    "kernels": [],
    "logits_dtype": "fp32",
    "residual_dtype": None,
    "lora_dropout": 0.0,
    "moments_dtype": None,
    "master_dtype": None,
    "fp8_recipe": "tensorwise",
    "fp8_params": False,
    "bf16_layers": [0, 0],
    "moe_dispatcher": "all-to-all",
    "moe_capacity": None,
    "moe_balanced": False,
    "microbatch_group": None,
    "cuda_graphs": False,
    "deterministic": False,
    "partition_activations": False,
    "allocator": "default",
    "offload_fraction": 1.0,
}
LORA_DEFAULTS: dict[str, Any] = {"lora_rank": 16, "lora_targets": "all-linear", "adapter_dtype": "fp32"}
MOST_DEFAULT_SEQUENCE = 8192
DEFAULT_GPU = "H100"


class Input(NamedTuple):
    """One input: the value that was used, and who said so."""

    value: Any
    source: Source


def settle(request: SizingRequest, architecture: Architecture, gpu: Gpu) -> dict[str, Input]:
    """Every input but the degrees, which the layout settles."""
    given = request.given()
    inputs = {name: Input(plain(value), "request") for name, value in given.items() if name not in ("model", "gpu")}
    for name, value in DEFAULTS.items():
        inputs.setdefault(name, Input(value, "default"))
    stack = STACKS[inputs["stack"].value]
    _settle_by_model(inputs, architecture)
    _settle_precision(inputs, gpu)
    _settle_by_stack(inputs, stack)
    if inputs["method"].value != "full":
        for name, value in LORA_DEFAULTS.items():
            inputs.setdefault(name, Input(value, "default"))
        base = "bf16" if inputs["method"].value == "lora" else "nf4-dq"
        inputs.setdefault("base_weights", Input(base, "default"))
    return inputs


def plain(value: Any) -> Any:
    """A value as JSON writes it."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {"full_layers": value.full_layers} if hasattr(value, "full_layers") else value


def _settle_by_model(inputs: dict[str, Input], architecture: Architecture) -> None:
    longest = min(architecture.max_positions or MOST_DEFAULT_SEQUENCE, MOST_DEFAULT_SEQUENCE)
    inputs.setdefault("sequence_length", Input(longest, "model"))


def _settle_precision(inputs: dict[str, Input], gpu: Gpu) -> None:
    if "precision" not in inputs:
        half = Input("bf16-mixed", "default") if gpu.has_bf16 else Input("fp16-mixed", "gpu")
        inputs["precision"] = half


def _settle_by_stack(inputs: dict[str, Input], stack: Stack) -> None:
    megatron_code = stack.name == "deepspeed" and inputs.get("vocab_multiple") is not None
    by_stack: dict[str, Any] = {
        "loss": "vocab-parallel" if megatron_code else stack.loss,
        "optimizer_impl": stack.optimizer_impl,
        "fsdp_version": stack.fsdp_version,
        "cp_comm": stack.cp_comm,
    }
    for name, value in by_stack.items():
        inputs.setdefault(name, Input(value, "stack"))
    added = [kernel for kernel in inputs["kernels"].value if not kernel.startswith("-")]
    taken = {kernel[1:] for kernel in inputs["kernels"].value if kernel.startswith("-")}
    kernels = sorted((stack.kernels | set(added)) - taken)
    inputs["kernels"] = Input(kernels, inputs["kernels"].source if added or taken else "stack")
