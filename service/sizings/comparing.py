"""One line per GPU of a list: how many it takes, how long, for how much; the cheapest and the fastest marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from service.sizings.answering import Answered
from service.sizings.render import layout_json
from service.sizings.timing import short_time


def comparison(answered: Sequence[Answered]) -> list[dict[str, Any]] | None:
    """The lines in the order of the goal; null for a single GPU."""
    if len(answered) < 2:
        return None
    ordered = sorted(answered, key=Answered.rank)
    rows = [line(one) for one in ordered]
    fitting = [index for index, one in enumerate(ordered) if one.sizing.fits]
    for mark, value in (("cheapest", _cost), ("fastest", _seconds)):
        priced = [(found, index) for index in fitting if (found := value(ordered[index])) is not None]
        for row in rows:
            row[mark] = False
        if priced:
            rows[min(priced)[1]][mark] = True
    return rows


def line(one: Answered) -> dict[str, Any]:
    """One GPU. Where no count holds the run there is no count and no layout, only how much is missing at best."""
    made, sizing, some = one.plan, one.sizing, not one.nowhere or one.question.dp is not None
    return {
        "gpu": one.gpu.gpu.id,
        "gpus": made.gpus if some else None,
        "nodes": made.nodes if some else None,
        "layout": layout_json(sizing.layout, sizing.run) if some else None,
        "peak_bytes": sizing.peak.device_bytes,
        "headroom_bytes": sizing.headroom_bytes,
        "fits": sizing.fits,
        **(short_time(made, one.tokens) if some else dict.fromkeys(("step_s", "tokens_per_s", "days", "cost"))),
    }


def _seconds(one: Answered) -> float | None:
    timed = one.times()
    return None if timed is None else float(timed.seconds_per_token[0])


def _cost(one: Answered) -> float | None:
    seconds, price = _seconds(one), one.gpu.gpu.price_usd_per_hour
    return None if seconds is None or not price else seconds * one.plan.gpus * price
