"""Which of many instants can be the fullest, whatever the sizes are.

An instant is a polynomial of bytes with one positive coefficient a product of symbols. Every symbol is at least 1, so
a product covers each product that divides it: bytes per token and hidden element cover bytes per token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from service.engine.autograd.storage import Monomial, extent_size

Total = Mapping[Monomial, int]


@lru_cache(maxsize=65536)
def divides(small: Monomial, large: Monomial) -> bool:
    """Whether every symbol of one product is in the other (both sorted)."""
    rest = iter(large)
    return all(symbol in rest for symbol in small)


def covers(one: Total, other: Total) -> bool:
    """Whether `one` is at least `other` for all sizes (sufficient, not necessary)."""
    missing = [(key, size - one.get(key, 0)) for key, size in other.items() if size > one.get(key, 0)]
    if not missing:
        return True
    spare = {key: size - other.get(key, 0) for key, size in one.items() if size > other.get(key, 0)}
    for key, need in missing:
        for larger, extra in spare.items():
            if extra and divides(key, larger):
                used = min(extra, need)
                spare[larger] -= used
                need -= used
                if not need:
                    break
        if need:
            return False
    return True


def typical(total: Total) -> int:
    """The polynomial at the primes that stand for its symbols: orders instants by size, roughly."""
    return sum(size * extent_size(key) for key, size in total.items())


def possible_maxima(totals: Sequence[Total]) -> list[int]:
    """Indices of the totals that no other one covers, largest first."""
    order = sorted(range(len(totals)), key=lambda index: -typical(totals[index]))
    kept: list[int] = []
    for index in order:
        if not any(covers(totals[other], totals[index]) for other in kept):
            kept.append(index)
    return kept
