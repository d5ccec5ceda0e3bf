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
from typing import NamedTuple

from service.accuracy.cases import LEVELS, packaged, trusted
from service.accuracy.prediction import Prediction, predictions
from service.accuracy.score import quantile
from service.engine import residuals
from service.engine.stacks import STACKS

MODULE = Path(residuals.__file__)
#: an 80 % interval leaves a tenth on either side
TAIL = 0.1
#: with fewer cases of a level than this a stack takes the level below
ENOUGH = 10
#: no interval is narrower than this, in thousandths
NARROWEST = 30
POOLED = "every stack"

HEADER = '''"""Measured over predicted, in thousandths, per stack and level of memory: the bounds of an 80 % interval.

Made by service/accuracy/calibration.py from service/accuracy/data; do not edit. `make calibrate` makes it again.
"""

from __future__ import annotations

from typing import NamedTuple


class Residual(NamedTuple):
    """Bounds in thousandths of the prediction, and the cases and sources that they come from."""

    low: int
    high: int
    cases: int
    sources: int


'''


class Bounds(NamedTuple):
    """Low and high in thousandths, with how many cases and sources they rest on."""

    low: int
    high: int
    cases: int
    sources: int


def groups(found: Iterable[Prediction]) -> dict[tuple[str, str], list[Prediction]]:
    """Predictions by (stack, level), and pooled over the stacks."""
    made: defaultdict[tuple[str, str], list[Prediction]] = defaultdict(list)
    for one in found:
        if one.sizing is not None and one.bytes and one.case.bytes:
            made[one.sizing.stack.name, one.case.kind].append(one)
            made[POOLED, one.case.kind].append(one)
    return dict(made)


def bounds(found: Sequence[Prediction]) -> Bounds:
    """The middle 80 % of measured over predicted, widened by 1 + 2/√n and never under ±3 %."""
    count: defaultdict[str, int] = defaultdict(int)
    for one in found:
        count[one.case.source] += 1
    ratios = [((one.case.bytes or 0) / (one.bytes or 1), 1 / count[one.case.source]) for one in found]
    widen = 1 + 2 / sqrt(len(ratios))
    low = 1 + (min(quantile(ratios, TAIL), 1) - 1) * widen
    high = 1 + (max(quantile(ratios, 1 - TAIL), 1) - 1) * widen
    return Bounds(
        min(round(low * 1000), 1000 - NARROWEST), max(round(high * 1000), 1000 + NARROWEST), len(found), len(count)
    )  # fmt: skip


def table(found: Iterable[Prediction]) -> dict[tuple[str, str], Bounds]:
    """Bounds of every stack and level with enough cases, and of the pool."""
    return {
        key: bounds(members)
        for key, members in sorted(groups(found).items())
        if len(members) >= ENOUGH or key[0] == POOLED
    }


def left_out(found: Sequence[Prediction], source: str) -> dict[tuple[str, str], Bounds]:
    """The table without the residuals of one source."""
    return table(one for one in found if one.case.source != source)


def module_text(made: dict[tuple[str, str], Bounds]) -> str:
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
    made = table(predictions(trusted(packaged())))
    MODULE.write_text(module_text(made), encoding="utf-8")
    print(f"{MODULE}: {len(made)} intervals")


if __name__ == "__main__":
    main()
