"""Arithmetic that reads the same for one layout (plain integers) and for thousands (int64 arrays).

Everything that differs from layout to layout goes through these few functions, so that the search and the single
sizing are one set of formulas. Python integers stay Python integers: exact, and cheap for one layout.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int: TypeAlias = int | NDArray[np.int64]
Bool: TypeAlias = bool | NDArray[np.bool_]


def where(condition: Bool, chosen: Int, otherwise: Int) -> Int:
    """`chosen` where `condition` holds, else `otherwise`."""
    if isinstance(condition, np.ndarray):
        result: NDArray[np.int64] = np.where(condition, chosen, otherwise)
        return result
    return chosen if condition else otherwise


def minimum(left: Int, right: Int) -> Int:
    """The smaller of two values, element by element."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        smaller: NDArray[np.int64] = np.minimum(left, right)
        return smaller
    return left if left <= right else right


def maximum(left: Int, right: Int) -> Int:
    """The larger of two values, element by element."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        larger: NDArray[np.int64] = np.maximum(left, right)
        return larger
    return left if left >= right else right


def ceil_div(dividend: Int, divisor: Int) -> Int:
    """Quotient rounded up: what the fullest of `divisor` ranks holds."""
    quotient: Int = -(-dividend // divisor)
    return quotient


def at(table: tuple[int, ...], index: Int) -> Int:
    """The entry of `table` at `index`, for one index or an array of them."""
    if isinstance(index, np.ndarray):
        looked_up: NDArray[np.int64] = np.asarray(table, dtype=np.int64)[index]
        return looked_up
    return table[index]


def repeated(copies: Int, alive: Iterable[Int]) -> tuple[Int, ...]:
    """`copies` × every count of `alive`. Where a count is plainly 1 the very same object is given, so that whoever
    multiplies by it can see that it is the same."""
    return tuple(copies if isinstance(count, int) and count == 1 else _product(copies, count) for count in alive)


def _product(copies: Int, count: Int) -> Int:
    if isinstance(count, int) and count == 0:
        return 0
    multiplied: Int = copies * count
    return multiplied


def share(value: Int, numerator: int, denominator: int) -> Int:
    """`value` × numerator / denominator in integers, rounded down."""
    scaled: Int = value * numerator // denominator
    return scaled
