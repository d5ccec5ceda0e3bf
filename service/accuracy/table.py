"""The score as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.accuracy.prediction import Prediction
from service.accuracy.score import Figures, Score

GIB = 1 << 30


def lines(result: Score, found: Sequence[Prediction], worst: int) -> Iterator[str]:
    """The table, then refusals, then the `worst` cases that are furthest off."""
    yield f"{result.cases} cases, {len(result.refused)} refused"
    yield from _group("level", result.levels)
    yield from _group("source", result.sources)
    if result.verdicts:
        verdicts = result.verdicts
        yield ""
        yield (
            f"verdicts: {verdicts.cases} cases, {verdicts.right:.1%} right, "
            f"{verdicts.fits_but_oom:.1%} said to fit ran out of memory"
        )
    yield "80 % intervals hold: " + ", ".join(f"{level} {share:.0%}" for level, share in result.holds.items())
    for one in result.refused[: worst or 5]:
        yield f"refused: {one.case.id}: {one.refusal}"
    measured = [one for one in found if not one.case.is_verdict]
    for one in sorted(measured, key=lambda one: -abs(one.error))[:worst]:
        size, value = (one.case.bytes or 0) / GIB, (one.bytes or 0) / GIB
        yield f"{one.error:+8.1%}  {one.case.id:18} {one.case.kind:9} {value:7.2f} of {size:7.2f} GiB  {one.case.url}"


def _group(title: str, groups: Mapping[str, Figures]) -> Iterator[str]:
    yield ""
    yield f"{title:34}{'cases':>6}{'median':>9}{'p90':>9}{'worst':>9}{'bias':>9}"
    for name, one in groups.items():
        yield f"{name:34}{one.cases:6}{one.median:9.1%}{one.p90:9.1%}{one.worst:9.1%}{one.bias:+9.1%}"
