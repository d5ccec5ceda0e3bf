"""The error by level and by source, verdicts, and how often the intervals hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.accuracy.cases import LEVELS
from service.accuracy.prediction import Prediction


class Figures(NamedTuple):
    """Absolute errors of a group of cases and their median with its sign, as shares of the measured value."""

    cases: int
    median: float
    p90: float
    worst: float
    bias: float


class Verdicts(NamedTuple):
    """Fits or out of memory: how many, the share that is right, and the share of fits that ran out."""

    cases: int
    right: float
    fits_but_oom: float


class Score(NamedTuple):
    """Everything the table shows."""

    cases: int
    refused: tuple[Prediction, ...]
    levels: dict[str, Figures]
    sources: dict[str, Figures]
    verdicts: Verdicts | None
    holds: dict[str, float]


def quantile(pairs: Iterable[tuple[float, float]], share: float) -> float:
    """The smallest value at which the weights of (value, weight) pairs reach `share` of their sum."""
    ordered = sorted(pairs)
    total, seen = sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        seen += weight
        if seen >= share * total:
            return value
    return ordered[-1][0]


def figures(found: Sequence[Prediction]) -> Figures:
    """Errors of a group; refusals count as 100 % off."""
    signed = [(one.error, one.case.weight) for one in found]
    size = [(abs(error), weight) for error, weight in signed]
    return Figures(
        len(found), quantile(size, 0.5), quantile(size, 0.9), max(size)[0], quantile(signed, 0.5)
    )  # fmt: skip


def score(found: Sequence[Prediction]) -> Score:
    """Summarise predictions of weighted cases."""
    by_level: defaultdict[str, list[Prediction]] = defaultdict(list)
    by_source: defaultdict[str, list[Prediction]] = defaultdict(list)
    for one in found:
        if not one.case.is_verdict:
            by_level[one.case.kind].append(one)
            by_source[f"{one.case.source} {one.case.kind}"].append(one)
    return Score(
        cases=len(found),
        refused=tuple(one for one in found if one.sizing is None),
        levels={level: figures(by_level[level]) for level in LEVELS if by_level[level]},
        sources={name: figures(by_source[name]) for name in sorted(by_source)},
        verdicts=verdicts([one for one in found if one.case.is_verdict]),
        holds={level: holds(by_level[level]) for level in LEVELS if by_level[level]},
    )


def verdicts(found: Sequence[Prediction]) -> Verdicts | None:
    """Right and dangerous verdicts; a refusal is wrong."""
    if not found:
        return None
    right = sum(one.sizing is not None and one.sizing.fits == (one.case.kind == "fits") for one in found)
    bad = sum(one.sizing is not None and one.sizing.fits and one.case.kind == "oom" for one in found)
    return Verdicts(len(found), right / len(found), bad / len(found))


def holds(found: Sequence[Prediction]) -> float:
    """Weighted share of measured values inside the answer's interval of their level."""
    inside = total = 0.0
    for one in found:
        if one.sizing is None or one.case.bytes is None:
            continue
        span = one.sizing.intervals[one.case.kind]
        total += one.case.weight
        inside += one.case.weight * (span.low <= one.case.bytes <= span.high)
    return inside / total if total else 0.0
