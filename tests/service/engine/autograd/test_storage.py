"""Views as torch makes them: where a reshape needs a copy and where it does not."""

from __future__ import annotations

import pytest

from service.engine.autograd.storage import contiguous_strides, dense_like, view_strides


@pytest.mark.parametrize(
    ("sizes", "strides", "wanted", "expected"),
    [
        # a contiguous (2, 3, 4) is a (6, 4) without a copy
        ((2, 3, 4), (12, 4, 1), (6, 4), (4, 1)),
        # (b, s, a, d) turned to (b, a, s, d): batch and heads cannot be merged when b > 1
        ((2, 5, 3, 4), (60, 4, 20, 1), (10, 3, 4), None),
        # … but they can when there is one sequence
        ((1, 5, 3, 4), (60, 4, 20, 1), (5, 3, 4), (4, 20, 1)),
        # the last dimension can always be cut
        ((2, 3, 8), (24, 8, 1), (2, 3, 2, 4), (24, 8, 4, 1)),
        # a slice of a wider row: rows do not touch, so they cannot be joined
        ((3, 4), (10, 1), (12,), None),
        # an expanded dimension keeps stride 0
        ((3, 5, 4), (0, 4, 1), (3, 20), (0, 1)),
    ],
)
def test_a_view_exists_exactly_where_strides_allow_it(
    sizes: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    assert view_strides(sizes, strides, wanted) == expected


def test_results_of_elementwise_operations_keep_the_order_of_dimensions() -> None:
    # (b, a, s, d) = (2, 5, 3, 4) seen through strides of (b, s, a, d)
    assert dense_like((2, 5, 3, 4), (60, 4, 20, 1)) == (60, 4, 20, 1)
    # a slice of it becomes dense
    assert dense_like((2, 5, 3, 2), (60, 4, 20, 1)) == (30, 2, 10, 1)


def test_row_major_strides() -> None:
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
