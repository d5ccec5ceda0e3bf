"""What to pull first: each lever sized by the engine, with what it touches and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from service.engine.floor import floor_bytes, fullest_stage
from service.engine.ledger import INSTANTS, STATE_TERMS
from service.engine.lever_options import Option, options
from service.engine.question import Plan, refusals
from service.engine.size import StageSizing, usable_bytes
from service.engine.step_time import of_plan

Touches = Literal["state", "activations", "state and activations"]

#: A lever that saves less than this matters to nobody.
WORTH_BYTES = 1 << 30
OPTIMIZER_STEP, LOSS = INSTANTS.index("optimizer_step"), INSTANTS.index("loss")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change to a request. `change` holds request keys that can be sent back as they are; `word` says it in short
    ("recompute=full"); `slower` is the time per token against now (1.3: 30 % more), None where speed is not known."""

    text: str
    word: str
    touches: Touches
    change: dict[str, Any]
    saves_bytes_per_gpu: int
    needed_bytes: int
    peak_bytes: int
    costs: str
    effort: int
    slower: float | None
    plan: Plan


def levers(made: Plan) -> list[Lever]:
    """Levers that save memory on the fullest stage, the most useful first.

    Useful is what saves enough to matter (1 GiB); for a run that does not fit, what alone makes it fit; then the
    cheaper kind; then what saves more.
    """
    now, usable = fullest_stage(made), usable_bytes(made.question.gpu, made.question.margin)
    seconds = _seconds(made)
    found = []
    for option in options(made):
        if any(refusals(option.plan.question, option.plan.layout)):
            continue
        then = fullest_stage(option.plan)
        if then.needed_bytes < now.needed_bytes:
            found.append(_lever(option, now, then, seconds))
    fits = now.needed_bytes <= usable

    def usefulness(lever: Lever) -> tuple[bool, bool, int, int]:
        matters = lever.saves_bytes_per_gpu >= WORTH_BYTES
        return (not matters, not fits and lever.needed_bytes > usable, lever.effort, -lever.saves_bytes_per_gpu)

    return sorted(found, key=usefulness)


def _lever(option: Option, now: StageSizing, then: StageSizing, seconds: float | None) -> Lever:
    after = _seconds(option.plan)
    slower = after / seconds if after is not None and seconds is not None else None
    return Lever(
        text=option.text,
        word=option.word,
        touches=touched(now, then),
        change=option.change,
        saves_bytes_per_gpu=now.needed_bytes - then.needed_bytes,
        needed_bytes=then.needed_bytes,
        peak_bytes=then.device_bytes,
        costs=option.costs if slower is None or "offload" in option.change else f"{option.costs}; {_pace(slower)}",
        effort=option.effort,
        slower=slower,
        plan=option.plan,
    )


def _seconds(made: Plan) -> float | None:
    timed = of_plan(made)
    return None if timed is None else float(timed.seconds_per_token[0])


def _pace(slower: float) -> str:
    if 0.98 < slower < 1.02:
        return "no slower per token"
    percent = abs(slower - 1) * 100
    return f"about {percent:.0f} % {'more' if slower > 1 else 'less'} time per token"


def touched(now: StageSizing, then: StageSizing) -> Touches:
    """Which of the two laws a change acts on: state that lasts, or what a step's tokens need."""
    state = any(_differ(_state(now, term), _state(then, term)) for term in STATE_TERMS)
    tokens = _differ(now.saved_bytes, then.saved_bytes)
    if state and tokens:
        return "state and activations"
    return "state" if state else "activations"


def _state(stage: StageSizing, term: str) -> int:
    return int(stage.line.terms[term][OPTIMIZER_STEP])  # type: ignore[index]


def _differ(before: int, after: int) -> bool:
    return abs(before - after) > max(before, after) // 100


def past_the_floor(made: Plan, found: list[Lever]) -> str | None:
    """The next lever that lowers the sharding floor: the first that brings it under the usable memory, else the one
    that lowers it most; None when no lever touches it."""
    usable = usable_bytes(made.question.gpu, made.question.margin)
    now = floor_bytes(made)
    lowered = [(floor_bytes(lever.plan), lever) for lever in found if lever.touches != "state"]
    lowered = [(size, lever) for size, lever in lowered if size < now]
    under = [lever for size, lever in lowered if size <= usable]
    if under:
        return under[0].word
    return min(lowered, key=lambda pair: pair[0])[1].word if lowered else None
