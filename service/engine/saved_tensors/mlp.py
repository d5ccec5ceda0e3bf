"""Tensors that the dense MLP keeps for backward."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Dim, Row
from service.engine.saved_tensors.scope import Scope

GATED = "GLU variants, arXiv:2002.05202; saved sets of silu, mul and mm in torch 2.13 derivatives.yaml"
PLAIN = "saved sets of gelu/relu and mm in torch 2.13 derivatives.yaml"


def gate(scope: Scope, tokens: Dim, width: Dim, module: str, dropped_by: str) -> Row:
    """Gate branch before its activation."""
    return scope.saved(
        "gate", module, (tokens, width), scope.compute, dropped_by=dropped_by,
        why="the activation's derivative is taken at it", source=GATED,
    )  # fmt: skip


def activated_gate(scope: Scope, tokens: Dim, width: Dim, module: str, dropped_by: str) -> Row:
    """Gate branch after its activation; a fused kernel computes it again instead."""
    return scope.saved(
        "activated gate", module, (tokens, width), scope.compute, dropped_by=dropped_by,
        why="the product saves both of its factors", source=GATED,
    )  # fmt: skip


def up(scope: Scope, tokens: Dim, width: Dim, module: str, dropped_by: str) -> Row:
    """Up branch (gated), or the first layer's output before the activation (plain)."""
    return scope.saved(
        "up", module, (tokens, width), scope.compute, dropped_by=dropped_by,
        why="factor of the gate, or where the activation's derivative is taken", source=GATED,
    )  # fmt: skip


def down_input(scope: Scope, tokens: Dim, width: Dim, module: str, dropped_by: str) -> Row:
    """What the down projection reads."""
    return scope.saved(
        "down projection input", module, (tokens, width), scope.linear_input, dropped_by=dropped_by,
        why="the weight gradient of the down projection needs it", source=PLAIN,
    )  # fmt: skip


def rows(
    scope: Scope, width: Dim, *, tokens: Dim | None = None, module: str = "mlp", dropped_by: str = "mlp",
    act_dropped_by: str | None = None,
) -> Iterator[Row]:  # fmt: skip
    """One MLP of `width` over `tokens`: gated 6f (fused) or 8f (eager), plain 4f bytes a token in 16 bits."""
    over = tokens or scope.tokens
    if scope.architecture.gated:
        yield gate(scope, over, width, module, dropped_by)
        if scope.kernels.mlp == "eager":
            yield activated_gate(scope, over, width, module, dropped_by)
    yield up(scope, over, width, module, dropped_by)
    yield down_input(scope, over, width, module, act_dropped_by or dropped_by)
