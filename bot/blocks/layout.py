"""Layouts, inputs and changes in the words of the command, so that what is read can be typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts

SHARD_WORDS = {"optimizer": "ZeRO-1", "gradients": "ZeRO-2", "parameters": "ZeRO-3", "none": "DDP"}

#: Keys as people type them; the rest of the keys are their own words.
SHORT_WORDS = {
    "sequence_length": "seq",
    "micro_batch": "mb",
    "global_batch": "gbs",
    "precision": "prec",
    "optimizer": "opt",
    "gradient_dtype": "grads",
    "attention": "attn",
    "recompute": "ckpt",
    "lora_rank": "rank",
}

#: What an assumption is called where a person reads it.
INPUT_NAMES = {
    "sequence_length": "sequence",
    "micro_batch": "micro-batch",
    "global_batch": "global batch",
    "gradient_dtype": "gradients in",
    "shard": "sharding",
}


def layout_words(layout: Mapping[str, Any]) -> str:
    """ "tp 8 · dp 4 · ZeRO-3 · full recompute": degrees of 1 are left out, sharding and recompute are always said."""
    words = [
        f"{name} {layout[name]}" for name in ("tp", "pp", "vpp", "cp", "ep", "etp", "dp") if degree(layout, name) > 1
    ]
    words.append(shard_words(layout))
    words.append(recompute_words(layout.get("recompute")))
    if degree(layout, "gradient_accumulation") > 1:
        words.append(texts.ACCUMULATION.format(count=layout["gradient_accumulation"]))
    return " · ".join(word for word in words if word) or texts.LAYOUT_ALONE


def degree(layout: Mapping[str, Any], name: str) -> int:
    value = layout.get(name)
    return value if isinstance(value, int) else 1


def shard_words(layout: Mapping[str, Any]) -> str:
    shard = str(layout.get("shard") or "none")
    if shard == "none" and degree(layout, "dp") == 1:
        return ""
    words = SHARD_WORDS.get(shard, shard)
    shard_degree, data_parallel = degree(layout, "shard_degree"), degree(layout, "dp") * degree(layout, "cp")
    hybrid = shard != "none" and 1 < shard_degree < data_parallel
    return texts.SHARD_WITHIN.format(shard=words, degree=shard_degree) if hybrid else words


def recompute_words(recompute: Any) -> str:
    if isinstance(recompute, Mapping):
        return texts.RECOMPUTE_LAYERS.format(layers=recompute.get("full_layers"))
    return texts.RECOMPUTE.format(what=recompute) if recompute and recompute != "none" else texts.NO_RECOMPUTE


def value_words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(value_words, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value_words(item)}" for key, item in value.items())
    return str(value)


def change_words(change: Mapping[str, Any]) -> str:
    """A change as words of the command: {"micro_batch": 1} → "mb=1"."""
    return " ".join(f"{SHORT_WORDS.get(key, key)}={command_value(value)}" for key, value in change.items())


def command_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"full:{value['full_layers']}" if "full_layers" in value else str(dict(value))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
