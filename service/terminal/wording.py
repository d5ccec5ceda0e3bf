"""Words for parts of a sizing: a layout, a moment of the step, an amount of money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOMENTS = {
    "forward_end": "at the end of forward",
    "loss": "at the loss",
    "first_backward": "in the first backward operation",
    "layer_backward": "in the backward of a layer",
    "backward_end": "at the end of backward",
    "optimizer_step": "in the optimizer step",
}


def term_name(term: Mapping[str, Any]) -> str:
    """ "optimizer moments" for optimizer_moments."""
    return str(term["term"]).replace("_", " ")


def gpus_text(place: Mapping[str, Any]) -> str:
    """ "16 GPUs (2 nodes)"."""
    gpus, nodes = place["gpus"], place.get("nodes") or 1
    return (f"{gpus:,} GPUs" if gpus != 1 else "1 GPU") + (f" ({nodes:,} nodes)" if nodes != 1 else "")


def layout_text(layout: Mapping[str, Any]) -> str:
    """The degrees that are not 1, what is sharded over how many ranks, and what is recomputed."""
    words = [f"{name}={layout[name]}" for name in ("tp", "pp", "vpp", "cp", "ep") if layout[name] not in (None, 1)]
    if layout["sp"] and layout["tp"] != 1:
        words.append("sp")
    if layout["ep"] not in (None, 1) and layout["etp"] not in (None, 1):
        words.append(f"etp={layout['etp']}")
    words.append(f"dp={layout['dp']}")
    parts = [" ".join(words)]
    if layout["shard"] != "none":
        parts.append(f"shard={layout['shard']}" + (f" over {layout['shard_degree']}" if layout["shard_degree"] else ""))
    parts.append(f"recompute={recompute_text(layout['recompute'])}")
    if layout["gradient_accumulation"] not in (None, 1):
        parts.append(f"{layout['gradient_accumulation']} micro-batches a step")
    return ", ".join(parts)


def recompute_text(recompute: Any) -> str:
    """`full:20` for {"full_layers": 20}, the word itself otherwise."""
    return f"full:{recompute['full_layers']}" if isinstance(recompute, Mapping) else str(recompute)


def moment_text(per_gpu: Mapping[str, Any]) -> str:
    """When and where the peak is: "in the optimizer step on stage 2"."""
    moment = str(per_gpu["peak"]["moment"])
    stage = f" on stage {per_gpu['stage']}" if per_gpu["layout"]["pp"] not in (None, 1) else ""
    return MOMENTS.get(moment, moment.replace("_", " ")) + stage


def dollars(cost: Mapping[str, Any]) -> str:
    """Whole dollars."""
    return f"${float(cost['usd']):,.0f}"


def money_text(cost: Mapping[str, Any]) -> str:
    """Dollars with the month of their prices."""
    return f"{dollars(cost)} (prices of {cost['price_date']})"
