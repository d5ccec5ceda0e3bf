"""What an answer says in words: verdict, why not fewer, confidence, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from service.engine.advice import unwise
from service.engine.question import Plan
from service.engine.recommend import Shortfall
from service.engine.search.choices import difference
from service.engine.size import Sizing
from service.engine.step_time import of_plan
from service.sizings.answering import Answered
from service.sizings.inputs import Input

GIB = 1 << 30
NAMES: Mapping[str, str] = {
    "weights": "weights",
    "gradients": "gradients",
    "master_weights": "master weights",
    "optimizer_moments": "optimizer moments",
    "activations": "activations",
    "working": "working memory",
}
MOMENTS: Mapping[str, str] = {
    "forward_end": "at the end of forward",
    "loss": "at the loss",
    "first_backward": "in the first backward operation",
    "layer_backward": "in a layer's backward",
    "backward_end": "at the end of backward",
    "optimizer_step": "in the optimizer step",
}


def gib(size: int) -> str:
    """Bytes in GiB, to three figures."""
    value = size / GIB
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"


def gpu_count(made: Plan) -> str:
    """ "32 × H100 (4 nodes)"."""
    nodes = f" ({made.nodes} nodes)" if made.nodes > 1 else ""
    return f"{made.gpus} × {made.question.gpu.name}{nodes}"


def layout_words(made: Plan) -> str:
    """The degrees above 1 and what else shapes the layout: "tp=8 dp=4, shard=parameters, recompute=full"."""
    layout = made.layout
    named = ("tp", "pp", "cp", "ep", "dp")
    degrees = [f"{name}={int(getattr(layout, name))}" for name in named if getattr(layout, name) > 1]
    extras = [f"shard={layout.shard}"] if layout.shard != "none" else []
    if made.run.recompute.kind != "none":
        extras.append(f"recompute={made.run.recompute.text}")
    return ", ".join([" ".join(degrees) or "one GPU", *extras])


def verdict(made: Plan, sizing: Sizing, missing: Shortfall | None) -> dict[str, str]:
    """Code and one line: GPUs, peak of usable, moment, layout, why not fewer."""
    high = sizing.intervals["device"].high
    needed, usable = sizing.needed_bytes, sizing.usable_bytes
    where = f"{gib(needed)} of {gib(usable)} GiB per GPU {MOMENTS[sizing.moment]}, {layout_words(made)}"
    if not sizing.fits:
        text = f"{gpu_count(made)} do not hold it: {where}; {gib(-sizing.headroom_bytes)} GiB too much"
        return {"code": "does_not_fit", "text": text}
    text = f"{gpu_count(made)}: {where}"
    if missing is not None:
        term = NAMES[missing.term]
        fewer = "1 is" if missing.gpus == 1 else f"{missing.gpus} are"
        text += f"; {fewer} not enough: {gib(missing.missing_bytes)} GiB too much, most of it {term}"
    return {"code": "tight" if high > usable else "fits", "text": text}


def why(chosen: Answered, made: Plan, sizing: Sizing, smallest: int, missing: Shortfall | None) -> list[str]:
    """Why this count and this layout."""
    instead = made != chosen.plan and chosen.laid_out
    this_layout = [f"It changes least of what was asked: {difference(chosen.plan, made)}."] if instead else []
    return [*_why_this_count(chosen, made, sizing, smallest, missing), *(this_layout or _why_this_layout(chosen, made))]


def _why_this_count(
    chosen: Answered, made: Plan, sizing: Sizing, smallest: int, missing: Shortfall | None
) -> Iterator[str]:
    held = f"{gib(sizing.needed_bytes)} of {gib(sizing.usable_bytes)} GiB usable per GPU"
    if made.gpus == smallest == 1:
        yield f"One GPU holds the run: {held}."
    elif made.gpus == smallest:
        yield f"{smallest} GPUs are the fewest that hold the run: {held}."
    elif made.gpus > smallest:
        yield f"{made.gpus} GPUs hold the run with {held}; {smallest} would be enough."
    else:
        yield f"{made.gpus} GPUs hold the run: {held}."
    if missing is None:
        return
    weighs = f"{NAMES[missing.term]} weigh most"
    each = f"each GPU would need {gib(missing.missing_bytes)} GiB more than it has; {weighs}"
    if chosen.laid_out:
        yield f"As asked ({layout_words(missing.plan)}) {each}."
    else:
        fewer = "One GPU does" if missing.gpus == 1 else f"{missing.gpus} do"
        yield f"{fewer} not: even with {layout_words(missing.plan)} {each}."


def _why_this_layout(chosen: Answered, made: Plan) -> Iterator[str]:
    timed = of_plan(made)
    if timed is None:
        yield "Of the layouts that fit, this one recomputes least and then leaves most room."
    else:
        rate = f"{float(timed.tokens[0] / timed.step_s[0]):,.0f} tokens/s"
        best = "costs least of all counts" if chosen.goal == "cost" else "takes least time"
        yield f"Of the layouts that fit, this one {best}: about {rate}, {float(timed.mfu[0]):.0%} MFU."


def confidence(sizing: Sizing) -> tuple[str, str]:
    """(because, confidence): the word for how sure the peak is, and its reason."""
    if not sizing.gpu.runtime_modelled:
        return f"the runtime of {sizing.gpu.vendor} devices is not modelled", "low"
    if sizing.recipe.precision == "fp8":
        return "what fp8 kernels keep differs from version to version", "low"
    if sizing.architecture.moe is not None:
        return "routing is taken as even; the fullest rank may hold more", "medium"
    if sizing.layout.shard == "parameters":
        return "gathered parameters depend on how layers are wrapped", "medium"
    return "dense model, every tensor derived", "high"


def unsupported_precision(sizing: Sizing) -> str | None:
    """The number format of the run's matrix products when the catalogue says that the GPU has no units for it."""
    wanted = "fp8" if sizing.recipe.precision == "fp8" else sizing.recipe.compute
    speeds = sizing.gpu.dense_tflops
    return wanted if wanted in ("fp8", "bf16") and speeds and not speeds.get(wanted) else None


def warnings(made: Plan, sizing: Sizing, inputs: Mapping[str, Input]) -> Iterator[tuple[str, str]]:
    """Layouts that run but are unwise, and inputs that were read in a way worth knowing."""
    gpu = sizing.gpu
    yield from unwise(sizing.architecture, made.layout, sizing.run, gpu)
    if inputs["precision"].source == "gpu":
        yield "no_bf16", f"{gpu.name} has no bf16 matrix units: fp16-mixed was taken"
    missing = unsupported_precision(sizing)
    if missing is not None and inputs["precision"].source == "request":
        yield "precision_not_on_gpu", f"{gpu.name} has no {missing} matrix units: memory is as sized, speed is not"
    longest = sizing.architecture.max_positions
    if longest and sizing.run.sequence_length > longest:
        yield (
            "longer_than_model",
            f"sequence_length {sizing.run.sequence_length} is beyond the model's {longest} positions",
        )
    if sizing.architecture.moe is not None and not sizing.run.moe_balanced:
        yield "balanced_routing", routing_words(made, sizing)


#: The fullest rank's share of token copies against the even one: 1.18 was measured on a trained router
#: (Qwen3-30B-A3B), early steps are worse (DeepEP issue 99); twice the even share is the usual bound people plan for.
SKEWED_PERMILLE = 2000


def routing_words(made: Plan, sizing: Sizing) -> str:
    """What even routing means for this answer: the peak when the fullest rank gets twice its share of tokens."""
    if int(made.layout.ep) == 1 or sizing.run.moe_capacity is not None:
        return "experts are taken as evenly loaded"
    skewed = replace(made, run=replace(made.run, routing_skew_permille=SKEWED_PERMILLE)).size()
    fits = "still fits" if skewed.fits else "does not fit"
    return (
        f"experts are taken as evenly loaded; a rank that gets twice its share of tokens needs "
        f"{gib(skewed.needed_bytes)} GiB, which {fits}"
    )
