"""What was sized, in one line, and what nobody asked for but had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.layout import INPUT_NAMES, value_words
from bot.blocks.text import bold, escape

#: Assumptions in the order in which they matter; the others are counted.
FIRST = (
    "sequence_length",
    "micro_batch",
    "method",
    "precision",
    "optimizer",
    "gpu",
    "stack",
    "attention",
    "loss",
    "gradient_dtype",
    "margin",
)
#: Said elsewhere in the message, or nobody's worry.
SILENT = frozenset(
    [
        "model",
        "goal",
        "gpus",
        "tokens",
        "recompute",
        "shard",
        "shard_degree",
        "tp",
        "sp",
        "pp",
        "vpp",
        "cp",
        "ep",
        "etp",
        "dp",
    ]
)

ALTERNATIVES_SHOWN = 3


def run_words(sizing: Mapping[str, Any]) -> str:
    """ "*Llama 3.1 70B* (70.6 B parameters) · sequence 8,192 · micro-batch 2 · bf16-mixed · adamw · full"."""
    model, inputs = sizing["model"], sizing["inputs"]
    words = [f"{bold(model['name'])} ({parameter_words(model)})"]
    words += [
        f"{name} {escape(value_words(inputs[key]['value']))}"
        for key, name in (("sequence_length", "sequence"), ("micro_batch", "micro-batch"))
        if _given(inputs, key)
    ]
    words += [_value(key, inputs[key]["value"]) for key in ("precision", "optimizer", "method") if _given(inputs, key)]
    return " · ".join(words)


def parameter_words(model: Mapping[str, Any]) -> str:
    total, trained = model["parameters"], model.get("trainable_parameters") or model["parameters"]
    words = f"{quantities.parameters(total)} parameters"
    if model.get("active_parameters") and model["active_parameters"] != total:
        words += f", {quantities.parameters(model['active_parameters'])} active"
    return words + (f", {quantities.parameters(trained)} trained" if trained != total else "")


def assumption_parts(sizing: Mapping[str, Any]) -> list[str]:
    """A line of assumptions, and a line that names the models a bare size could also have meant."""
    assumed = {
        key: item["value"]
        for key, item in sizing["inputs"].items()
        if item["from"] not in ("request", "solved")
        and item["value"] not in (None, False, [], "")
        and key not in SILENT
    }
    shown = [key for key in FIRST if key in assumed]
    parts = []
    if shown:
        words = " · ".join(f"{INPUT_NAMES.get(key, key)} {_value(key, assumed[key])}" for key in shown)
        more = texts.ASSUMED_MORE.format(count=len(assumed) - len(shown)) if len(assumed) > len(shown) else ""
        parts.append(texts.ASSUMED.format(assumptions=words + more))
    others = sizing["model"].get("alternatives") or []
    if others:
        names = ", ".join(escape(str(other)) for other in others[:ALTERNATIVES_SHOWN])
        parts.append(texts.SIZE_ALTERNATIVES.format(name=escape(sizing["model"]["name"]), others=names))
    return parts


def _value(key: str, value: Any) -> str:
    if key == "margin":
        return f"{100 * float(value):.3g} %"
    return escape(texts.METHODS.get(value, value_words(value)) if key == "method" else value_words(value))


def _given(inputs: Mapping[str, Any], key: str) -> bool:
    return key in inputs and inputs[key].get("value") is not None
