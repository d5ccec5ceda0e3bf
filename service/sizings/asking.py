"""From a checked request to the question that the engine answers: a layout that is given, or one to be found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from service.engine.adapters import ALL_LINEAR, ATTENTION_TARGETS
from service.engine.architecture import Architecture
from service.engine.errors import FieldError, InvalidInput
from service.engine.hardware import Gpu
from service.engine.question import Plan, Question, plan, refusals
from service.engine.run import Recompute, Run
from service.engine.stacks import STACKS, RecipeRequest, Stack
from service.requests.request import SizingRequest
from service.sizings.inputs import Input

DEGREES = ("tp", "pp", "cp", "ep", "dp")
AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The engine's question, and which of three it is: a given plan, the best layout on `gpus`, or a count to find."""

    question: Question
    plan: Plan | None
    gpus: int | None


def ask(request: SizingRequest, inputs: Mapping[str, Input], architecture: Architecture, gpu: Gpu) -> Asked:
    """Build the question; raises InvalidInput with everything that this stack or model cannot do."""
    values = {name: entry.value for name, entry in inputs.items()}
    stack = STACKS[values["stack"]]
    errors = list(_stack_refusals(values, stack, architecture))
    if errors:
        raise InvalidInput(errors)
    given = {name: getattr(request, name) for name in DEGREES if getattr(request, name) is not None}
    fixed = {name: degree for name, degree in given.items() if degree != AUTO}
    layout_given = bool(given)
    searched = not layout_given or any(
        getattr(request, name) == AUTO for name in (*DEGREES, "shard", "recompute", "micro_batch")
    )
    if layout_given:
        fixed = _other_degrees(request, given, fixed, searched)
    question = Question(
        architecture=architecture,
        stack=stack,
        gpu=gpu,
        recipe=recipe_request(values),
        run=run(values, stack),
        margin=values["margin"],
        global_batch=values["global_batch"],
        stage=values["stage"],
        sp=values.get("sp"),
        etp=values.get("etp"),
        vpp=values["vpp"] if layout_given is False or request.pp == AUTO else values["vpp"] or 1,
        shard=_chosen(request.shard, stack.shard if layout_given else None),
        shard_degree=values["shard_degree"],
        stage_layers=tuple(values["stage_layers"]) if values["stage_layers"] else None,
        recompute=_recompute(request, values, layout_given),
        micro_batch=None if request.micro_batch == AUTO else int(values["micro_batch"]),
        **fixed,
    )
    if searched:
        return Asked(question=question, plan=None, gpus=request.gpus)
    return Asked(question=question, plan=_given_plan(question), gpus=request.gpus)


def _chosen(asked: str | None, otherwise: str | None) -> Any:
    if asked == AUTO:
        return None
    return asked if asked is not None else otherwise


def _other_degrees(
    request: SizingRequest, given: Mapping[str, Any], fixed: dict[str, int], searched: bool
) -> dict[str, int]:
    """Degrees that a given layout leaves out are 1, except dp, which fills `gpus`."""
    filled = {name: 1 for name in ("tp", "pp", "cp", "ep") if name not in given} | fixed
    if "dp" in given or (searched and any(degree == AUTO for degree in given.values())):
        return filled
    used = filled["tp"] * filled["pp"] * filled["cp"]
    gpus = request.gpus or used
    if gpus % used:
        raise InvalidInput(
            [
                FieldError(
                    "/gpus", f"tp·pp·cp = {used} does not divide {gpus} GPUs", str(gpus), f"a multiple of {used}",
                    tuple(str(count) for count in (gpus // used * used, (gpus // used + 1) * used) if count),
                )
            ]
        )  # fmt: skip
    filled["dp"] = gpus // used
    return filled


def _recompute(request: SizingRequest, values: Mapping[str, Any], layout_given: bool) -> Recompute | None:
    asked = request.recompute
    if asked == AUTO:
        return None
    modules = tuple(values["recompute_modules"] or ())
    if asked is None:
        if modules:
            return Recompute(kind="selective", modules=modules)
        return Recompute() if layout_given else None
    if isinstance(asked, str):
        return Recompute(kind=asked, modules=modules if asked == "selective" else ())  # type: ignore[arg-type]
    return Recompute(kind="full", full_layers=asked.full_layers)


def _given_plan(question: Question) -> Plan:
    degrees = {name: getattr(question, name) or 1 for name in DEGREES}
    made = plan(
        question,
        tp=degrees["tp"],
        pp=degrees["pp"],
        cp=degrees["cp"],
        ep=degrees["ep"],
        dp=degrees["dp"],
        shard=question.shard or question.stack.shard,
        recompute=question.recompute or Recompute(),
        micro_batch=question.micro_batch or 1,
    )
    errors = list(refusals(question, made.layout))
    if question.global_batch is not None and question.global_batch % (degrees["dp"] * (question.micro_batch or 1)):
        whole = degrees["dp"] * (question.micro_batch or 1)
        near = tuple(
            str(count)
            for count in (question.global_batch // whole * whole, -(-question.global_batch // whole) * whole)
            if count
        )
        errors.append(
            FieldError(
                "/global_batch", f"dp·micro_batch = {whole} does not divide it", str(question.global_batch),
                f"a multiple of {whole}", near,
            )
        )  # fmt: skip
    if question.stage is not None and question.stage >= degrees["pp"]:
        errors.append(
            FieldError("/stage", "there is no such stage", str(question.stage), f"0 to {degrees['pp'] - 1}", ("0",))
        )
    if errors:
        raise InvalidInput(errors)
    return made


def recipe_request(values: Mapping[str, Any]) -> RecipeRequest:
    """The part of the inputs that decides bytes per parameter."""
    targets = values.get("lora_targets", "all-linear")
    named = {"attention": ATTENTION_TARGETS, "all-linear": ALL_LINEAR}
    return RecipeRequest(
        precision=values["precision"],
        optimizer=values["optimizer"],
        method=values["method"],
        gradient_dtype=values.get("gradient_dtype"),
        master_dtype=values["master_dtype"],
        moments_dtype=values["moments_dtype"],
        base_weights=values.get("base_weights"),
        adapter_dtype=values.get("adapter_dtype", "fp32"),
        lora_rank=values.get("lora_rank", 16),
        lora_targets=named[targets] if isinstance(targets, str) else tuple(targets),
    )


def run(values: Mapping[str, Any], stack: Stack) -> Run:
    """The part of the inputs that decides activations and transients; the layout fills in the rest."""
    return Run(
        sequence_length=values["sequence_length"],
        attention=values["attention"],
        loss=values["loss"],
        compile=values["compile"],
        kernels=frozenset(values["kernels"]),
        logits_dtype=values["logits_dtype"],
        residual_dtype=values["residual_dtype"],
        pipeline_schedule=values["pipeline_schedule"],
        microbatch_group=values["microbatch_group"],
        cp_comm=values["cp_comm"],
        vocab_multiple=values.get("vocab_multiple"),
        optimizer_impl=values["optimizer_impl"],
        fsdp_version=values["fsdp_version"],
        reshard_after_forward=values.get("reshard_after_forward"),
        moe_dispatcher=values["moe_dispatcher"],
        moe_capacity=values["moe_capacity"],
        moe_balanced=values["moe_balanced"],
        fp8_recipe=values["fp8_recipe"] if values["precision"] == "fp8" else None,
        fp8_params=values["fp8_params"],
        bf16_layers=tuple(values["bf16_layers"]),
        partition_activations=values["partition_activations"],
        deterministic=values["deterministic"],
        cuda_graphs=values["cuda_graphs"],
        allocator=values["allocator"],
        offload=frozenset(values["offload"]),
        offload_fraction=values["offload_fraction"],
        lora_dropout=values["lora_dropout"],
    )


def _stack_refusals(values: Mapping[str, Any], stack: Stack, architecture: Architecture) -> Iterator[FieldError]:
    """Combinations that no layout can save."""
    if values["precision"] == "fp16-mixed" and stack.name == "torchtitan":
        yield FieldError(
            "/precision", "torchtitan does not train in fp16-mixed", "fp16-mixed", "bf16-mixed, bf16, fp32, fp8",
            ("bf16-mixed",),
        )  # fmt: skip
    megatron_code = stack.name == "deepspeed" and values.get("vocab_multiple") is not None
    if values.get("recompute") == "selective" and "selective" not in stack.recomputes and not megatron_code:
        yield FieldError(
            "/recompute", f"{stack.name} has no selective recompute", "selective", "none or full", ("full", "none"),
        )  # fmt: skip
    asked = values.get("recompute")
    if isinstance(asked, Mapping) and asked["full_layers"] > architecture.layers:
        yield FieldError(
            "/recompute", f"the model has {architecture.layers} layers to recompute", str(asked["full_layers"]),
            f'{{"full_layers": n}} with n up to {architecture.layers}', ("full",),
        )  # fmt: skip
    if architecture.position == "learned" and values["sequence_length"] > architecture.max_positions:
        yield FieldError(
            "/sequence_length", "longer than the model's learned position table", str(values["sequence_length"]),
            f"at most {architecture.max_positions}", (str(architecture.max_positions),),
        )  # fmt: skip
