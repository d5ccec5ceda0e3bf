"""Bare sizes: which model "8B" takes and which others it offers."""

from __future__ import annotations

from service.catalog.facts import packaged
from service.catalog.sizes import bare_size


def test_a_size_inside_another_number_is_not_the_size_of_a_model() -> None:
    """internlm2-1_8b is a 1.8B model, whatever its repository's spelling carries."""
    size = bare_size(packaged(), "8B")
    assert size is not None
    assert "internlm2-1.8b" not in {fact.id for fact in size.others}
