"""Shapes for sizes that no model has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.catalog.bounds import LEAST_PARAMETERS, MOST_PARAMETERS
from service.catalog.derived import derived_shape
from service.catalog.facts import packaged
from service.engine.parameters import count


@given(exponent=st.floats(min_value=6, max_value=15))
def test_any_size_gets_a_shape_that_counts_nearly_as_many(exponent: float) -> None:
    parameters = min(max(round(10**exponent), LEAST_PARAMETERS), MOST_PARAMETERS)
    architecture, neighbours = derived_shape(packaged(), parameters)
    assert count(architecture) == pytest.approx(parameters, rel=0.03)
    assert architecture.heads * architecture.head_dim == architecture.hidden_size
    assert architecture.heads % architecture.kv_heads == 0
    assert 1 <= len(neighbours) <= 2


@pytest.mark.parametrize("billions", [3, 7, 13, 23, 33, 48, 70, 150, 300, 1000])
def test_shapes_of_usual_sizes_split_over_eight_gpus_and_four_stages(billions: int) -> None:
    architecture, _ = derived_shape(packaged(), billions * 10**9)
    assert architecture.heads % 8 == 0
    assert (architecture.ffn_size or 0) % 8 == 0
    assert architecture.layers % 4 == 0


def test_the_shape_of_70b_is_that_of_its_neighbours() -> None:
    """Llama 2 70B and Llama 3.1 70B, both 80 layers of 8192."""
    architecture, neighbours = derived_shape(packaged(), 70 * 10**9)
    assert neighbours == ("llama-2-70b", "llama-3.1-70b")
    assert (architecture.layers, architecture.hidden_size, architecture.heads) == (80, 8192, 64)


def test_depth_and_width_grow_with_the_size() -> None:
    shapes = [derived_shape(packaged(), 10**exponent)[0] for exponent in range(6, 15)]
    widths = [shape.hidden_size for shape in shapes]
    assert widths == sorted(widths)
