"""Sizes are written with their unit, GiB and GB never mixed."""

from __future__ import annotations

import pytest

from bot.blocks import quantities


@pytest.mark.parametrize(
    ("size_bytes", "binary", "decimal"),
    [
        (2**30, "1.0 GiB", "1.1 GB"),
        (85_028_896_768, "79.2 GiB", "85.0 GB"),  # an H100 "80 GB" as the driver presents it
        (141_107_412_992, "131.4 GiB", "141.1 GB"),  # 70,553,706,496 parameters of two bytes
        (1_128_859_303_936, "1,051 GiB", "1,129 GB"),
        (512 * 2**20, "0.5 GiB", "0.5 GB"),
        (50 * 2**20, "50.0 MiB", "52.4 MB"),
        (3 * 2**10, "3.0 KiB", "3.1 kB"),
        (-(2**30), "-1.0 GiB", "-1.1 GB"),
    ],
)
def test_a_size_in_both_units(size_bytes: int, binary: str, decimal: str) -> None:
    assert (quantities.gib(size_bytes), quantities.gb(size_bytes)) == (binary, decimal)


def test_nothing_is_said_once() -> None:
    assert quantities.both(0) == "0"
    assert quantities.both(2**30) == "1.0 GiB (1.1 GB)"


@pytest.mark.parametrize(("part", "whole", "words"), [(1, 4, "25%"), (1, 400, "<1%"), (0, 4, "0%"), (1, 0, "0%")])
def test_a_share(part: int, whole: int, words: str) -> None:
    assert quantities.share(part, whole) == words


@pytest.mark.parametrize(
    ("count", "words"), [(70_553_706_496, "70.6 B"), (124_439_808, "124 M"), (1_000_000_000_000, "1 T"), (999, "999")]
)
def test_parameters_in_three_digits(count: int, words: str) -> None:
    assert quantities.parameters(count) == words


@pytest.mark.parametrize(("amount", "words"), [("12345.60", "$12,346"), ("2.99", "$2.99")])
def test_money(amount: str, words: str) -> None:
    assert quantities.money(amount) == words


@pytest.mark.parametrize(("seconds", "words"), [(0.25, "250 ms"), (6.4, "6.4 s"), (600, "10.0 min")])
def test_durations(seconds: float, words: str) -> None:
    assert quantities.duration(seconds) == words
