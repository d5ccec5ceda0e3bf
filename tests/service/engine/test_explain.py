"""Every row of an answer can be looked at, and the rows sum to what the answer says."""

from __future__ import annotations

import json

import pytest

from service.engine.architecture import Architecture
from service.engine.errors import InvalidInput
from service.engine.explain import explain, total_bytes
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import MOMENTS, TERMS
from service.engine.run import Run
from service.engine.size import Sizing, size
from service.engine.stacks import STACKS, RecipeRequest, recipe

LLAMA = Architecture(
    layers=4, hidden_size=512, heads=8, kv_heads=2, head_dim=64, ffn_size=1536, vocab_size=4096, max_positions=4096
)  # fmt: skip
CARD = Gpu(id="any", name="any", vendor="NVIDIA", memory_bytes=80 << 30)


@pytest.fixture(params=["reference", "huggingface", "megatron"])
def sizing(request: pytest.FixtureRequest) -> Sizing:
    stack = STACKS[request.param]
    made = recipe(stack, RecipeRequest(precision="bf16-mixed"), sharded=False)
    run = Run(sequence_length=1024, micro_batch=2, loss=stack.loss, kernels=stack.kernels)
    return size(LLAMA, made, Layout(), run, stack, CARD)


def test_all_rows_sum_to_the_peak_of_the_device(sizing: Sizing) -> None:
    assert total_bytes(explain(sizing)) == sizing.peak.device_bytes


@pytest.mark.parametrize("moment", MOMENTS)
def test_rows_of_a_term_sum_to_the_term_at_every_moment(sizing: Sizing, moment: str) -> None:
    told = dict(sizing.moments())[moment]
    for term, expected in told.items():
        assert total_bytes(explain(sizing, term, moment)) == expected


def test_a_term_is_shown_where_it_is_largest(sizing: Sizing) -> None:
    largest = max(terms["activations"] for _, terms in sizing.moments())
    assert total_bytes(explain(sizing, "activations")) == largest > 0


def test_a_row_is_its_formula_with_sizes_put_in(sizing: Sizing) -> None:
    rows = explain(sizing, "activations")
    assert {row["term"] for row in rows} == {"activations"}
    for row in rows:
        product = 1
        for factor in row["substitution"].removesuffix(" B").split(" × "):
            product *= int(factor)
        assert product == row["bytes"]
        assert row["total_bytes"] == row["bytes"] * row["copies"]
        assert row["why"]
        assert row["source"]


def test_rows_are_json_and_in_the_order_of_the_terms(sizing: Sizing) -> None:
    rows = explain(sizing)
    assert json.loads(json.dumps(rows)) == json.loads(json.dumps(rows))
    order = [TERMS.index(row["term"]) for row in rows]
    assert order == sorted(order)


def test_rows_of_a_group_stand_together_largest_first(sizing: Sizing) -> None:
    rows = explain(sizing, "activations")
    groups = [row["group"] for row in rows]
    assert len(list(dict.fromkeys(groups))) == len([g for i, g in enumerate(groups) if i == 0 or groups[i - 1] != g])
    for group in set(groups):
        sizes = [row["total_bytes"] for row in rows if row["group"] == group]
        assert sizes == sorted(sizes, reverse=True)


def test_an_unknown_term_is_refused_with_the_nearest_one(sizing: Sizing) -> None:
    with pytest.raises(InvalidInput) as caught:
        explain(sizing, "activation")
    (error,) = caught.value.errors
    assert error.pointer == "/term"
    assert error.suggestions[0] == "activations"
