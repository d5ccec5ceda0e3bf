"""Figures that are measured, not derived: each with the range that was seen and where."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20
GIB = 1 << 30


class Quantity(NamedTuple):
    """A measured figure in bytes (or thousandths, for shares), with the range seen in measurements."""

    low: int
    value: int
    high: int
    source: str


class Residual(NamedTuple):
    """Bounds of measured over predicted in thousandths, and the cases and sources that they come from."""

    low: int
    high: int
    cases: int
    sources: int
