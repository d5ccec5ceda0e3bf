"""A sizing as people read it: the rows of the tables, the bar of one GPU, layouts and inputs in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from service.requests.request import KEY_NAMES

TERM_NAMES = {
    "weights": "Weights",
    "gradients": "Gradients",
    "master_weights": "Master weights",
    "optimizer_moments": "Optimizer moments",
    "activations": "Activations",
    "working": "Working memory",
    "runtime": "Runtime",
}
VERDICTS = {"fits": "Fits", "tight": "Tight", "does_not_fit": "Does not fit"}
ORIGINS = {
    "request": "as asked",
    "default": "default",
    "stack": "from the stack",
    "model": "from the model",
    "gpu": "from the GPU",
    "derived": "worked out",
    "solved": "solved for",
}
MOMENTS = {
    "forward_end": "end of forward",
    "loss": "loss",
    "first_backward": "first backward operation",
    "layer_backward": "backward of a layer",
    "backward_end": "end of backward",
    "optimizer_step": "optimizer step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRow:
    """One term of memory, of the whole model and of the fullest GPU; bytes. `number` marks it in the bar."""

    number: int
    term: str
    name: str
    whole_bytes: int | None
    bytes_per_parameter: float | None
    gpu_bytes: int
    share: float
    scales_with: str
    formula: str | None
    because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A term in the bar: from `x`, `width` wide, in percent of the bar."""

    number: int
    term: str
    name: str
    bytes: int
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One GPU: what is on it, how much may be, and how much there is. Places are in percent of the bar's width."""

    segments: tuple[Segment, ...]
    usable_x: float
    memory_x: float
    usable_bytes: int
    memory_bytes: int
    text: str


def term_rows(sizing: Mapping[str, Any]) -> list[TermRow]:
    """The terms in the contract's order. Shares are of what the device holds."""
    whole = {term["term"]: term for term in sizing["whole_model"]["terms"]}
    device_bytes = sizing["per_gpu"]["peak"]["device_bytes"] or 1
    rows = []
    for number, term in enumerate(sizing["per_gpu"]["terms"], start=1):
        name = term["term"]
        unsharded = whole.get(name, {})
        rows.append(
            TermRow(
                number=number,
                term=name,
                name=TERM_NAMES[name],
                whole_bytes=unsharded.get("bytes"),
                bytes_per_parameter=unsharded.get("bytes_per_parameter"),
                gpu_bytes=term["bytes"],
                share=term["bytes"] / device_bytes,
                scales_with=term["scales_with"],
                formula=unsharded.get("formula") or term["formula"],
                because=term["because"],
            )
        )
    return rows


def bar(sizing: Mapping[str, Any]) -> Bar:
    """The bar of the fullest GPU; its scale ends at the memory of the GPU, or beyond when the run does not fit."""
    memory, usable = sizing["gpu"]["memory_bytes"], sizing["per_gpu"]["usable_bytes"]
    rows = term_rows(sizing)
    needed = sum(row.gpu_bytes for row in rows)
    scale = 100 / (max(memory, needed) or 1)
    segments, x = [], 0.0
    for row in rows:
        if row.gpu_bytes:
            width = row.gpu_bytes * scale
            segments.append(
                Segment(number=row.number, term=row.term, name=row.name, bytes=row.gpu_bytes, x=x, width=width)
            )
            x += width
    parts = ", ".join(f"{row.name} {gib(row.gpu_bytes)}" for row in rows if row.gpu_bytes)
    return Bar(
        segments=tuple(segments),
        usable_x=usable * scale,
        memory_x=memory * scale,
        usable_bytes=usable,
        memory_bytes=memory,
        text=f"{parts}; {gib(usable)} of {gib(memory)} may be used",
    )


def inputs(sizing: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key, value, where it came from) of every input that has a value, in the order of the vocabulary."""
    known = sizing["inputs"]
    for key in (*(name for name in KEY_NAMES if name in known), *(name for name in known if name not in KEY_NAMES)):
        value = known[key]["value"]
        if value is not None and value != []:
            yield key, shown(value), ORIGINS.get(known[key]["from"], known[key]["from"])


def layout_words(layout: Mapping[str, Any]) -> str:
    """`tp=8 dp=4 shard=parameters recompute=full`: what is not 1 or none, as one would type it."""
    degrees = [f"{name}={layout[name]}" for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") if layout[name] > 1]
    if layout["shard"] != "none":
        degrees.append(f"shard={layout['shard']}")
    if layout["recompute"] != "none":
        degrees.append(f"recompute={shown(layout['recompute'])}")
    degrees.append(f"micro_batch={layout['micro_batch']}")
    return " ".join(degrees)


def shown(value: Any) -> str:
    """A JSON value without quotes around plain words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    return json.dumps(value, ensure_ascii=False)


def gib(size_bytes: int) -> str:
    """GiB with its unit; small terms are not rounded to nothing."""
    value = size_bytes / 2**30
    return f"{value:.1f} GiB" if abs(value) >= 0.05 or not size_bytes else f"{size_bytes / 2**20:.1f} MiB"


def gb(size_bytes: int) -> str:
    """GB with its unit; small terms are not rounded to nothing."""
    value = size_bytes / 10**9
    return f"{value:.1f} GB" if abs(value) >= 0.05 or not size_bytes else f"{size_bytes / 10**6:.1f} MB"
