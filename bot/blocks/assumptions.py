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
    counts = {"parameters": total, "active": model.get("active_parameters") or total, "trained": trained}
    written = {name: quantities.parameters(count) for name, count in counts.items()}
    differing = [
        f"{count} {name}" for name, count in written.items() if name == "parameters" or count != written["parameters"]
    ]
    return ", ".join(differing)


def assumption_words(sizing: Mapping[str, Any]) -> str:
    """One line, or "" when nothing had to be assumed."""
    assumed = {
        key: item["value"]
        for key, item in sizing["inputs"].items()
        if item["from"] not in ("request", "solved")
        and item["value"] not in (None, False, [], "")
        and key not in SILENT
    }
    shown = [key for key in FIRST if key in assumed]
    if not shown:
        return ""
    words = " · ".join(f"{INPUT_NAMES.get(key, key)} {_value(key, assumed[key])}" for key in shown)
    more = len(assumed) - len(shown)
    return texts.ASSUMED.format(assumptions=words + (texts.ASSUMED_MORE.format(count=more) if more else ""))


def _value(key: str, value: Any) -> str:
    if key == "margin":
        return f"{100 * float(value):.3g} %"
    return escape(texts.METHODS.get(value, value_words(value)) if key == "method" else value_words(value))


def _given(inputs: Mapping[str, Any], key: str) -> bool:
    return key in inputs and inputs[key].get("value") is not None
