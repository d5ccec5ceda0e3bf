"""From allocated to reserved to device: each step a named quantity between its bounds."""

from __future__ import annotations

import pytest

from service.engine import allocator, runtime
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS, TERMS
from service.engine.quantities import GIB, MIB, Quantity
from service.engine.run import Run
from service.engine.stacks import STACKS
from service.engine.timeline import Timeline

A100 = Gpu(id="a", name="A100", vendor="NVIDIA", memory_bytes=80 * GIB, compute_capability="8.0")
V100 = Gpu(id="v", name="V100", vendor="NVIDIA", memory_bytes=16 * GIB, compute_capability="7.0")
HUGGING_FACE, TORCHTITAN, MEGATRON = STACKS["huggingface"], STACKS["torchtitan"], STACKS["megatron"]


def step(weights: int, **working_by_instant: int) -> Timeline:
    terms = {term: [0] * len(INSTANTS) for term in TERMS if term != "runtime"}
    terms["weights"] = [weights] * len(INSTANTS)
    for name, size in working_by_instant.items():
        terms["working"][INSTANTS.index(name)] = size
    return Timeline(terms)


@pytest.mark.parametrize("module", [allocator, runtime])
def test_every_quantity_lies_between_its_bounds_and_names_a_source(module: object) -> None:
    found = [value for value in vars(module).values() if isinstance(value, Quantity)]
    assert found
    for quantity in found:
        assert 0 <= quantity.low <= quantity.value <= quantity.high
        assert quantity.source


def test_a_single_gpu_has_no_communicators() -> None:
    assert runtime.communicators(Layout(), Run(sequence_length=1)) == 0


def test_communicators_grow_with_groups_not_with_the_world() -> None:
    run = Run(sequence_length=1)
    small, large = runtime.communicators(Layout(dp=2), run), runtime.communicators(Layout(dp=1024), run)
    assert small == large == runtime.FIRST_COMMUNICATOR.value
    assert runtime.communicators(Layout(dp=2, tp=2), run) == small + runtime.NEXT_COMMUNICATOR.value


def test_expert_parallel_all_to_all_has_buffers_of_its_own() -> None:
    layout = Layout(dp=8, ep=8)
    with_buffers = runtime.communicators(layout, Run(sequence_length=1))
    without = runtime.communicators(layout, Run(sequence_length=1, moe_dispatcher="deepep"))
    assert with_buffers - without == runtime.ALL_TO_ALL.value == 2500 * MIB


def test_code_from_before_lazy_loading_has_a_larger_context() -> None:
    old = runtime.context(MEGATRON, Run(sequence_length=1), A100)
    new = runtime.context(MEGATRON, Run(sequence_length=1, kernels=frozenset({"te"})), A100)
    assert old.value > new.value
    assert runtime.context(HUGGING_FACE, Run(sequence_length=1), V100).value > new.value


def test_layer_blocks_are_cached_beside_the_logits_that_do_not_fit_them() -> None:
    line = step(10 * GIB, loss=8 * GIB, layer_backward_first=4 * GIB)
    slack = allocator.slack(line, Layout(), Run(sequence_length=1), HUGGING_FACE)
    # 3 % of the 18 GiB peak, and 1.1 times the 4 GiB of a layer
    assert slack == 18 * GIB * 30 // 1000 + 4 * GIB * 1100 // 1000


def test_expandable_segments_hold_little_more_than_is_allocated() -> None:
    line = step(10 * GIB, loss=8 * GIB, layer_backward_first=4 * GIB)
    run = Run(sequence_length=1, allocator="expandable")
    assert allocator.slack(line, Layout(), run, HUGGING_FACE) == 18 * GIB * 25 // 1000


def test_torchtitan_keeps_the_holes_of_gradients_under_the_loss() -> None:
    line = step(10 * GIB, loss=8 * GIB)
    line.terms["gradients"][INSTANTS.index("optimizer_step")] = 3 * GIB
    run = Run(sequence_length=1, allocator="expandable")
    assert allocator.slack(line, Layout(), run, TORCHTITAN) == 3 * GIB + 18 * GIB * 25 // 1000


def test_cached_blocks_never_go_beyond_the_card() -> None:
    line = step(70 * GIB, loss=8 * GIB, layer_backward_first=4 * GIB)
    levels = runtime.runtime(78 * GIB, Layout(), Run(sequence_length=1), HUGGING_FACE, A100, line)
    firm = 78 * GIB * 40 // 1000
    assert levels.slack == levels.firm_slack == firm


def test_graphs_keep_pools_that_cannot_be_given_back() -> None:
    plain, captured = Run(sequence_length=1), Run(sequence_length=1, cuda_graphs=True)
    more = allocator.firm_slack(GIB, Layout(), captured) - allocator.firm_slack(GIB, Layout(), plain)
    assert more == allocator.GRAPHS.value
