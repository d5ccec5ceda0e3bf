"""Tensors that a mixture-of-experts layer keeps for backward, with even routing."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import MixtureOfExperts
from service.engine.ledger import Dim, Row
from service.engine.saved_tensors import mlp
from service.engine.saved_tensors.scope import Scope

ROUTER = "top-k softmax router, arXiv:2101.03961, section 2.1"
DISPATCH = "Megatron-core token dispatcher: permuted copies of the hidden states, k per token"


def router_scores(scope: Scope, moe: MixtureOfExperts) -> Row:
    """Router probabilities over all experts, fp32."""
    return scope.saved(
        "router scores", "moe", (scope.tokens_sp, Dim("E", moe.experts)), "fp32", dropped_by="moe",
        why="softmax backward and the load-balancing loss need them", source=ROUTER,
    )  # fmt: skip


def permuted_tokens(scope: Scope) -> Row:
    """Hidden states in the order of the experts: the input of the first grouped product."""
    return scope.saved(
        "permuted tokens", "moe", (scope.routed_tokens, scope.hidden), scope.linear_input, dropped_by="moe",
        why="the experts' first weight gradients need their inputs, one copy per chosen expert", source=DISPATCH,
    )  # fmt: skip


def unpermuted_tokens(scope: Scope) -> Row:
    """Expert outputs in the order of the experts, as dropless dispatch keeps them; with a capacity nothing is kept."""
    return scope.saved(
        "tokens before unpermutation", "moe", (scope.routed_tokens, scope.hidden), scope.compute, dropped_by="moe",
        why="they are weighted and added up when they are put back; seen in all dropless measurements", source=DISPATCH,
    )  # fmt: skip


def unweighted_activation(scope: Scope) -> Row:
    """Expert activation before the router's weight multiplies it."""
    shape = (scope.routed_tokens, scope.expert_ffn)
    return scope.saved(
        "expert activation before weighting", "moe", shape, scope.compute, dropped_by="moe moe_act",
        why="the gradient of the router's weight is the product with it", source=DISPATCH,
    )  # fmt: skip


def rows(scope: Scope) -> Iterator[Row]:
    """One routed MLP with its shared experts."""
    moe = scope.architecture.moe
    assert moe is not None
    yield router_scores(scope, moe)
    yield permuted_tokens(scope)
    yield from mlp.rows(
        scope, scope.expert_ffn, tokens=scope.routed_tokens, module="moe", dropped_by="moe",
        act_dropped_by="moe moe_act",
    )  # fmt: skip
    if scope.separate_expert_weighting:
        yield unweighted_activation(scope)
    if scope.kernels.keeps_unpermuted:
        yield unpermuted_tokens(scope)
    if moe.shared_width:
        yield from mlp.rows(scope, scope.shared_ffn, module="shared experts", dropped_by="moe shared_experts")
