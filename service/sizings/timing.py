"""Time and money as the contract writes them: of a step, and of the whole run where its tokens are known."""

from __future__ import annotations

from typing import Any

from service.engine.hardware import Gpu
from service.engine.question import Plan
from service.engine.step_time import Times, interval, of_plan

SECONDS_PER_DAY = 86_400
#: Step times are a model's: more figures than this would pretend.
FIGURES = 4


def rounded(value: float) -> float:
    """`value` to four figures."""
    return float(f"{value:.{FIGURES}g}")


def money(gpu: Gpu, gpus: int, seconds: float) -> dict[str, Any] | None:
    """What `gpus` devices cost for so long, at the catalogue's price; None where it has none."""
    if gpu.price_usd_per_hour is None:
        return None
    return {"usd": f"{gpu.price_usd_per_hour * gpus * seconds / 3600:.2f}", "price_date": gpu.price_date}


def run_seconds(timed: Times, tokens: int | None) -> float | None:
    """Seconds of the whole run; None without its tokens."""
    return None if tokens is None else tokens * float(timed.seconds_per_token[0])


def time_json(made: Plan, tokens: int | None) -> dict[str, Any] | None:
    """`time` of a sizing; null where the device's speed is not known."""
    timed = of_plan(made)
    if timed is None:
        return None
    gpu, step = made.question.gpu, float(timed.step_s[0])
    rate, whole = float(timed.tokens[0]) / step, run_seconds(timed, tokens)
    low, high = interval(made.question)
    costs = None if whole is None else [money(gpu, made.gpus, whole * factor) for factor in (low, 1.0, high)]
    return {
        "step_s": rounded(step),
        "tokens_per_s": rounded(rate),
        "mfu": rounded(float(timed.mfu[0])),
        "days": None if whole is None else rounded(whole / SECONDS_PER_DAY),
        "cost": costs[1] if costs else None,
        "intervals": {
            "step_s": [rounded(step * low), rounded(step * high)],
            "tokens_per_s": [rounded(rate / high), rounded(rate / low)],
            "days": None if whole is None else [rounded(whole * factor / SECONDS_PER_DAY) for factor in (low, high)],
            "cost": [costs[0], costs[2]] if costs and costs[0] else None,
        },
        "tokens_per_step": int(timed.tokens[0]),
    }


def short_time(made: Plan, tokens: int | None) -> dict[str, Any]:
    """Step, throughput, days and cost of one line of a table."""
    timed = of_plan(made)
    if timed is None:
        return {"step_s": None, "tokens_per_s": None, "days": None, "cost": None}
    whole = run_seconds(timed, tokens)
    return {
        "step_s": rounded(float(timed.step_s[0])),
        "tokens_per_s": rounded(float(timed.tokens[0] / timed.step_s[0])),
        "days": None if whole is None else rounded(whole / SECONDS_PER_DAY),
        "cost": None if whole is None else money(made.question.gpu, made.gpus, whole),
    }
