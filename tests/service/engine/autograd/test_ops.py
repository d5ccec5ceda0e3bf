"""What single operations save and allocate, against torch 2.13's derivatives written out by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from service.engine.autograd import attention, ops
from service.engine.autograd.graph import run_backward
from service.engine.autograd.storage import Tensor
from service.engine.autograd.tape import Tape


def leaf(tape: Tape, words: str, dtype: str = "bf16") -> Tensor:
    """A tensor that asks for a gradient, as an earlier layer's output would."""
    return tape.leaf(tape.new(tape.shape(words), dtype, "input"), "input")


def saved(tape: Tape) -> Counter[str]:
    """Bytes saved, as {"b·s": 4, …}."""
    found: Counter[str] = Counter()
    for info in tape.live.values():
        if info.savers:
            found["·".join(info.key)] += info.itemsize
    return found


def test_a_product_saves_both_of_its_factors() -> None:
    tape = Tape()
    x, y = leaf(tape, "b s"), leaf(tape, "b s")
    out = ops.mul(x, y)
    assert saved(tape) == {"b·s": 2 + 2}
    assert out.needs_grad


def test_a_product_with_a_constant_saves_only_the_constant() -> None:
    tape = Tape()
    x, constant = leaf(tape, "b s"), tape.new(tape.shape("b s"), "fp32", "constant")
    out = ops.mul(x, constant)
    assert saved(tape) == {"b·s": 4}
    assert out.dtype == "fp32"


def test_a_sum_saves_nothing() -> None:
    tape = Tape()
    out = ops.add(leaf(tape, "b s"), leaf(tape, "b s"))
    assert saved(tape) == {}
    assert out.needs_grad


@pytest.mark.parametrize("operation", [ops.silu, ops.gelu, ops.relu, ops.tanh, ops.sigmoid])
def test_an_activation_saves_one_tensor(operation) -> None:  # type: ignore[no-untyped-def]
    tape = Tape()
    x = leaf(tape, "b s h")
    out = operation(x)
    assert saved(tape) == {"b·h·s": 2}
    assert out.shape == x.shape


def test_expm1_saves_its_result_and_the_minimum_with_a_number_its_input() -> None:
    tape = Tape()
    x = leaf(tape, "b s")
    out = ops.expm1(ops.minimum(x))
    # derivatives.yaml: minimum reads self, expm1 reads result; what lies between them goes
    assert saved(tape) == {"b·s": 2 + 2}
    assert out.dtype == "bf16"


def test_autocast_runs_expm1_and_softplus_in_fp32() -> None:
    tape = Tape(autocast="bf16", weights="fp32")
    grown, soft = ops.expm1(leaf(tape, "b s")), ops.softplus(leaf(tape, "h"))
    # expm1 keeps its fp32 result, softplus the fp32 copy of its input
    assert saved(tape) == {"b·s": 4, "h": 4}
    assert grown.dtype == soft.dtype == "fp32"


def test_where_keeps_nothing_but_its_condition() -> None:
    tape = Tape()
    x, y = leaf(tape, "b s"), leaf(tape, "b s", "fp32")
    out = ops.where(tape.new(tape.shape("b s"), "bool", "condition"), x, y, "chosen")
    assert saved(tape) == {"b·s": 1}
    assert out.dtype == "fp32"


def test_a_linear_saves_its_input_but_not_its_weight() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    weight = tape.parameter("w", (("f",), ("h",)), "bf16")
    out = ops.product(x, weight, None, "out")
    assert saved(tape) == {"b·h·s": 2}
    assert out.shape == (("b",), ("s",), ("f",))


def test_a_frozen_linear_saves_nothing() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    weight = tape.parameter("w", (("f",), ("h",)), "bf16", trainable=False)
    out = ops.product(x, weight, None, "out")
    assert saved(tape) == {}
    assert out.needs_grad


def test_autocast_saves_a_cast_input_and_caches_one_weight_copy() -> None:
    tape = Tape(autocast="bf16", weights="fp32")
    x = leaf(tape, "b s h", "fp32")
    weight = tape.parameter("w", (("f",), ("h",)), "fp32")
    first, second = ops.product(x, weight, None, "out"), ops.product(x, weight, None, "out")
    # every product casts its input for itself (2 bytes each); the weight's copy is made once
    assert saved(tape) == {"b·h·s": 2 + 2, "f·h": 2}
    assert first.dtype == second.dtype == "bf16"
    assert sum(info.kind == "cast" for info in tape.live.values()) == 1


def test_layer_norm_saves_its_input_and_two_statistics_a_row() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    out = ops.layer_norm(x, None, None, "norm")
    assert saved(tape) == {"b·h·s": 2, "b·s": 4 + 4}
    assert out.dtype == "bf16"


def test_dropout_saves_a_mask_of_one_byte_an_element_and_none_at_rate_0() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    assert ops.dropout(x, 0.0, "dropout") is x
    out = ops.dropout(x, 0.1, "dropout")
    assert saved(tape) == {"b·h·s": 1}
    assert out.needs_grad


def test_batched_products_of_one_sequence_need_no_copies() -> None:
    shapes = {}
    for ones in (frozenset[str](), frozenset({"b"})):
        tape = Tape(ones)
        x = ops.transpose(leaf(tape, "b s kv d"), 1, 2)
        out = ops.matmul(x, ops.transpose(x, 2, 3), "scores")
        shapes[bool(ones)] = (len(tape.infos), out.shape)
    # with b > 1 both factors are laid out anew; with one sequence only the input and the scores exist
    assert shapes[False][0] == 4
    assert shapes[True][0] == 2


@pytest.mark.parametrize(
    ("dtype", "masked", "grouped", "expected"),
    [
        ("bf16", False, True, "flash"),
        ("bf16", False, False, "flash"),
        ("bf16", True, False, "efficient"),
        ("fp32", False, False, "efficient"),
        ("fp32", False, True, "math"),
        ("fp32", True, False, "efficient"),
    ],
)
def test_which_attention_kernel_torch_takes(dtype: str, masked: bool, grouped: bool, expected: str) -> None:
    tape = Tape()
    query = leaf(tape, "b kv*g s d", dtype)
    key = leaf(tape, "b kv s d" if grouped else "b kv*g s d", dtype)
    assert attention.kernel(query, key, key, masked=masked) == expected


def test_flash_attention_keeps_q_k_v_its_output_and_one_fp32_a_row() -> None:
    tape = Tape()
    query, key, value = leaf(tape, "b kv*g s d"), leaf(tape, "b kv s d"), leaf(tape, "b kv s d")
    out = attention.attend(query, key, value, chosen="flash")
    # q and output 2 bytes each, k and v as well, log-sum-exp 4; 16 and 8 bytes of random state
    assert saved(tape) == {"b·d·g·kv·s": 2 + 2, "b·d·kv·s": 2 + 2, "b·g·kv·s": 4, "2": 8, "": 8}
    assert out.shape == query.shape


def test_backward_frees_what_an_operation_saved_once_its_gradient_is_made() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    out = ops.silu(ops.silu(x))
    node = out.node
    assert node is not None
    before = saved(tape)
    gradient = ops.like(out, "gradient")
    del out
    run_backward(tape, node, gradient)
    del node, gradient
    assert before == {"b·h·s": 2 + 2}
    # what is left: the input, and its gradient (the input's own saved copy is the input)
    assert Counter(info.label for info in tape.live.values()) == {"input": 1, "gradient of silu": 1}


def test_gradients_that_meet_are_added_out_of_place() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    out = ops.add(ops.silu(x), ops.silu(x))
    node = out.node
    assert node is not None
    gradient = ops.like(out, "gradient")
    del out, x
    run_backward(tape, node, gradient)
    assert any(info.label == "sum of gradients" for info in tape.infos)


def test_a_checkpointed_call_keeps_its_input_and_makes_the_rest_again_in_backward() -> None:
    tape = Tape()
    x = leaf(tape, "b s h")
    out = tape.checkpoint(lambda y: ops.silu(ops.mul(y, y, "square")), x)
    assert saved(tape) == {"b·h·s": 2}
    made = len(tape.infos)
    node = out.node
    assert node is not None
    gradient = ops.like(out, "gradient")
    del out
    run_backward(tape, node, gradient)
    again = [info.label for info in tape.infos[made:]]
    # the square is computed again; the last activation is not, since nothing after it was saved
    assert "square" in again
    assert "silu" not in again
