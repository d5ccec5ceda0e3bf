"""An instant is left out only when another one is at least as full for every size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.engine.autograd.dominance import covers, divides, possible_maxima

SYMBOLS = ("b", "h", "s")
monomials = st.lists(st.sampled_from(SYMBOLS), max_size=4).map(lambda symbols: tuple(sorted(symbols)))
totals = st.dictionaries(monomials, st.integers(1, 9), max_size=5)


def value(total: dict[tuple[str, ...], int], sizes: dict[str, int]) -> int:
    result = 0
    for key, size in total.items():
        for symbol in key:
            size *= sizes[symbol]
        result += size
    return result


def test_a_product_covers_what_divides_it() -> None:
    assert divides(("b", "s"), ("b", "h", "s"))
    assert not divides(("b", "s", "s"), ("b", "h", "s"))
    # 4·b·s·h + 2·s covers 3·b·s·h + 1·b·s: the spare byte per token and element pays for a byte per token
    assert covers({("b", "h", "s"): 4, ("s",): 2}, {("b", "h", "s"): 3, ("b", "s"): 1})
    # … and cannot pay twice
    assert not covers({("b", "h", "s"): 4}, {("b", "h", "s"): 3, ("b", "s"): 1, ("s",): 1})


@given(one=totals, other=totals, b=st.integers(1, 5), s=st.integers(1, 5), h=st.integers(1, 5))
def test_what_is_covered_is_never_larger(one, other, b, s, h) -> None:  # type: ignore[no-untyped-def]
    if covers(one, other):
        sizes = {"b": b, "s": s, "h": h}
        assert value(one, sizes) >= value(other, sizes)


@given(found=st.lists(totals, min_size=1, max_size=8), b=st.integers(1, 5), s=st.integers(1, 5), h=st.integers(1, 5))
def test_the_largest_of_all_is_among_the_possible_ones(found, b, s, h) -> None:  # type: ignore[no-untyped-def]
    sizes = {"b": b, "s": s, "h": h}
    left = [found[index] for index in possible_maxima(found)]
    assert max(value(total, sizes) for total in left) == max(value(total, sizes) for total in found)
