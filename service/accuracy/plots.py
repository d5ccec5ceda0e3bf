"""Plots of docs/accuracy.md as plain SVG: `python -m service.accuracy.plots docs/images`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from service.accuracy.cases import LEVELS, packaged, trusted
from service.accuracy.prediction import Prediction, predictions

GIB = 1 << 30
WIDTH, HEIGHT, MARGIN = 720, 440, 56
LEGEND = 200
LEAST, MOST = 0.5, 160.0
#: told apart by hue and by shape
COLOURS = ("#1b6ca8", "#d1495b", "#2a9d8f", "#8d5a97", "#e09f3e", "#5f6c7b", "#7a9e3a", "#b5651d", "#3d405b", "#00798c")
#: half a point of error a bar, up to this
WIDEST = 0.25
BARS = 25


def svg(body: Sequence[str], title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    """One picture with a title for those who cannot see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'font-family="system-ui, sans-serif" font-size="12">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    """A label."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#333">{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A stroke."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def place(gib: float) -> float:
    """Position on a logarithmic axis, 0 to 1."""
    return math.log(max(min(gib, MOST), LEAST) / LEAST) / math.log(MOST / LEAST)


def scatter(found: Sequence[Prediction], level: str) -> str:
    """Predicted against measured, one colour a family, on logarithmic axes."""
    mine = [one for one in found if one.case.kind == level and one.bytes]
    families = sorted({one.case.source for one in mine})
    right, bottom = WIDTH - LEGEND, HEIGHT - MARGIN
    across, up = right - MARGIN, bottom - 24

    def x(gib: float) -> float:
        return MARGIN + place(gib) * across

    def y(gib: float) -> float:
        return bottom - place(gib) * up

    body = [line(x(LEAST), y(LEAST), x(MOST), y(MOST), 'stroke="#999"')]
    for tick in (1, 2, 4, 8, 16, 32, 64, 128):
        body += [line(x(tick), bottom, x(tick), 24, 'stroke="#eee"'), text(x(tick), bottom + 16, str(tick))]
        body += [
            line(MARGIN, y(tick), right, y(tick), 'stroke="#eee"'),
            text(MARGIN - 8, y(tick) + 4, str(tick), "end"),
        ]
    for one in mine:
        colour = COLOURS[families.index(one.case.source) % len(COLOURS)]
        cx, cy = x((one.case.bytes or 0) / GIB), y((one.bytes or 0) / GIB)
        body.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3.5" fill="{colour}" fill-opacity="0.65"/>')
    for index, family in enumerate(families):
        at = 34 + 18 * index
        body.append(f'<circle cx="{right + 16}" cy="{at - 4}" r="4" fill="{COLOURS[index % len(COLOURS)]}"/>')
        body.append(text(right + 26, at, family, "start"))
    body += [text(MARGIN + across / 2, HEIGHT - 12, "measured, GiB"), text(MARGIN, 16, "predicted, GiB", "middle")]
    return svg(body, f"{level}: predicted against measured peak of {len(mine)} runs")


def histogram(found: Sequence[Prediction]) -> str:
    """Signed errors of each level, in bars of two points; what is further off is in the outermost."""
    body: list[str] = []
    high, bottom_margin = HEIGHT / len(LEVELS), 34
    for row, level in enumerate(LEVELS):
        errors = [one.error for one in found if one.case.kind == level and one.bytes]
        counts = [0] * BARS
        for error in errors:
            share = (max(min(error, WIDEST), -WIDEST) + WIDEST) / (2 * WIDEST)
            counts[min(int(share * BARS), BARS - 1)] += 1
        body += list(_bars(counts, level, row * high, high - bottom_margin))
    return svg(body, "signed errors by level")


def _bars(counts: Sequence[int], level: str, top: float, high: float) -> Iterator[str]:
    across, most = WIDTH - 2 * MARGIN, max(counts)
    each = across / BARS
    for index, count in enumerate(counts):
        tall = (high - 16) * count / most
        yield (
            f'<rect x="{MARGIN + index * each + 1:.1f}" y="{top + high - tall:.1f}" width="{each - 2:.1f}" '
            f'height="{tall:.1f}" fill="{COLOURS[0]}"/>'
        )
    yield line(MARGIN, top + high, WIDTH - MARGIN, top + high, 'stroke="#999"')
    yield text(MARGIN, top + 14, level, "start")
    for error in (-0.25, -0.1, 0.0, 0.1, 0.25):
        yield text(MARGIN + (error + WIDEST) / (2 * WIDEST) * across, top + high + 15, f"{error:+.0%}")


def main() -> None:
    """Write one scatter a level and the histogram into the folder that is named."""
    folder = Path(sys.argv[1])
    found = list(predictions(trusted(packaged())))
    for level in LEVELS:
        (folder / f"accuracy-{level}.svg").write_text(scatter(found, level), encoding="utf-8")
    (folder / "accuracy-errors.svg").write_text(histogram(found), encoding="utf-8")


if __name__ == "__main__":
    main()
