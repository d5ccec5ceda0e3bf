"""How many token copies the fullest rank holds: even, padded to a capacity, or skewed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.engine.architecture import Architecture, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Run
from service.engine.saved_tensors.scope import Scope, kernels
from service.engine.stacks import STACKS, RecipeRequest, recipe

MIXTRAL = Architecture(
    layers=32, hidden_size=4096, heads=32, kv_heads=8, head_dim=128, ffn_size=None, vocab_size=32000,
    max_positions=32768, moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=14336),
)  # fmt: skip
H100 = Gpu(id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, compute_capability="9.0")
EVEN = 2 * 4096 // 4  # two experts a token; 4,096 tokens, a quarter of them on each tensor-parallel rank


def routed(ep: int = 8, **changes: object) -> object:
    stack = STACKS["megatron"]
    run = replace(Run(sequence_length=4096, kernels=stack.kernels), **changes)  # type: ignore[arg-type]
    layout = Layout(tp=4, sp=True, dp=8, ep=ep, shard="optimizer")
    made = recipe(stack, RecipeRequest(), sharded=False)
    return Scope(MIXTRAL, run, layout, made, kernels(stack, run, made, H100)).routed_tokens.size


def test_even_routing_gives_every_rank_as_many_copies_as_it_sends() -> None:
    assert routed() == EVEN == 2048


@pytest.mark.parametrize(("factor", "copies"), [(1.0, 2048), (1.25, 2560), (0.5, 1024)])
def test_a_capacity_factor_pads_or_drops_to_that_many_times_the_even_share(factor: float, copies: int) -> None:
    assert routed(moe_capacity=factor) == copies


def test_a_skewed_router_fills_one_of_several_ranks() -> None:
    assert routed(routing_skew_permille=2000) == 4096


def test_one_rank_with_all_experts_holds_every_copy_however_they_are_spread() -> None:
    assert routed(ep=1, routing_skew_permille=2000) == 2048
