"""Intervals from the residuals of the packaged cases: `python -m service.accuracy.calibration` (or `make calibrate`).

Writes service/engine/residuals.py: for every stack and level the quantiles of measured over predicted, every source
weighing the same, as they are for a run from a source that is not among them. `left_out` predicts each source without
its own residuals, which is how the coverage in docs/accuracy.md is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path

from service.accuracy.cases import LEVELS, packaged, trusted
from service.accuracy.prediction import Prediction, level_bytes, predictions
from service.accuracy.score import quantile
from service.engine import residuals
from service.engine.intervals import Interval, intervals
from service.engine.quantities import Residual
from service.engine.stacks import STACKS

MODULE = Path(residuals.__file__)
#: an 80 % interval leaves a tenth on either side
TAIL = 0.1
#: with fewer cases of a level than this a stack takes the level below
ENOUGH = 10
#: no interval is narrower than this, in thousandths
NARROWEST = 30
POOLED = "every stack"
NAMES: tuple[str, ...] = LEVELS

HEADER = '''"""Measured over predicted, in thousandths, per stack and level of memory: the bounds of an 80 % interval.

Made by service/accuracy/calibration.py from service/accuracy/data; do not edit. `make calibrate` makes it again.
"""

from __future__ import annotations

from service.engine.quantities import Residual

'''


def groups(found: Iterable[Prediction]) -> dict[tuple[str, str], list[Prediction]]:
    """Predictions by (stack, level), and pooled over the stacks."""
    made: defaultdict[tuple[str, str], list[Prediction]] = defaultdict(list)
    for one in found:
        if one.sizing is not None and one.bytes and one.case.bytes:
            made[one.sizing.stack.name, one.case.kind].append(one)
            made[POOLED, one.case.kind].append(one)
    return dict(made)


def bounds(found: Sequence[Prediction]) -> Residual:
    """The middle 80 % of measured over predicted, widened by 1 + 2/√n and never under ±3 %."""
    count: defaultdict[str, int] = defaultdict(int)
    for one in found:
        count[one.case.source] += 1
    ratios = [((one.case.bytes or 0) / (one.bytes or 1), 1 / count[one.case.source]) for one in found]
    widen = 1 + 2 / sqrt(len(ratios))
    low = 1 + (min(quantile(ratios, TAIL), 1) - 1) * widen
    high = 1 + (max(quantile(ratios, 1 - TAIL), 1) - 1) * widen
    return Residual(
        min(round(low * 1000), 1000 - NARROWEST), max(round(high * 1000), 1000 + NARROWEST), len(found), len(count)
    )  # fmt: skip


def table(found: Iterable[Prediction]) -> dict[tuple[str, str], Residual]:
    """Bounds of every stack and level with enough cases, and of the pool."""
    return {
        key: bounds(members)
        for key, members in sorted(groups(found).items())
        if len(members) >= ENOUGH or key[0] == POOLED
    }


def left_out(found: Sequence[Prediction], source: str) -> dict[tuple[str, str], Residual]:
    """The table without the residuals of one source."""
    return table(one for one in found if one.case.source != source)


def coverage(found: Sequence[Prediction]) -> dict[str, float]:
    """Weighted share of measured values inside intervals that were made without their own source, by level."""
    inside: defaultdict[str, float] = defaultdict(float)
    total: defaultdict[str, float] = defaultdict(float)
    for source in sorted({one.case.source for one in found}):
        made = left_out(found, source)
        by_stack = {stack: {x: made[stack, x] for x in NAMES if (stack, x) in made} for stack in STACKS}
        pooled = {level: made[POOLED, level] for level in NAMES if (POOLED, level) in made}
        for one in found:
            if one.case.source == source and one.stage is not None and one.case.bytes:
                span = span_of(one, by_stack, pooled)
                total[one.case.kind] += one.case.weight
                inside[one.case.kind] += one.case.weight * (span.low <= one.case.bytes <= span.high)
    return {level: inside[level] / total[level] for level in LEVELS if total[level]}


def span_of(
    one: Prediction, by_stack: dict[str, dict[str, Residual]], pooled: dict[str, Residual]
) -> Interval:  # fmt: skip
    """The interval of a prediction's level with other residuals than the engine's own."""
    sizing, stage = one.sizing, one.stage
    assert sizing is not None and stage is not None
    values = {level: level_bytes(stage, level) for level in NAMES}
    made = intervals(values, sizing.layout, sizing.run, sizing.stack, sizing.gpu, residuals=by_stack, pooled=pooled)
    return made[one.case.kind]


def module_text(made: dict[tuple[str, str], Residual]) -> str:
    """The Python module that the engine imports."""
    lines = [HEADER + "RESIDUALS: dict[str, dict[str, Residual]] = {"]
    for stack in STACKS:
        rows = [f'        "{x}": Residual{tuple(made[stack, x])},' for x in LEVELS if (stack, x) in made]
        lines += [f'    "{stack}": {{', *rows, "    },"] if rows else [f'    "{stack}": {{}},']
    lines += ["}", "", "#: over all stacks, for those with few cases", "POOLED: dict[str, Residual] = {"]
    lines += [f'    "{level}": Residual{tuple(made[POOLED, level])},' for level in LEVELS]
    return "\n".join([*lines, "}", ""])


def main() -> None:
    """Write the module."""
    found = list(predictions(trusted(packaged())))
    made = table(found)
    MODULE.write_text(module_text(made), encoding="utf-8")
    shares = ", ".join(f"{level} {share:.0%}" for level, share in coverage(found).items())
    print(f"{MODULE}: {len(made)} intervals; without a source's own residuals they hold {shares}")


if __name__ == "__main__":
    main()
