"""A bar drawn with characters is read before any number."""

from __future__ import annotations

import pytest

from bot.blocks.bar import gauge


@pytest.mark.parametrize(
    ("used", "usable", "drawn"),
    [
        (0, 12, "░░░░░░░░░░░░"),
        (6, 12, "██████░░░░░░"),
        (1, 1000, "█░░░░░░░░░░░"),
        (12, 12, "████████████"),
        (15, 12, "████████████|▓▓▓"),
        (10**6, 12, "████████████|▓▓▓▓▓▓▓▓▓▓▓▓"),
        (5, 0, "░░░░░░░░░░░░"),
    ],
)
def test_a_gauge_shows_what_is_taken_and_what_overflows(used: int, usable: int, drawn: str) -> None:
    assert gauge(used, usable) == drawn
