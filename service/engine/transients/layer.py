"""Gradients of activations inside the layer that backward is in."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Bundle
from service.engine.stage import IN_LAYER_BACKWARD, Prepared, StageView, heaviest_kind
from service.engine.transients.parts import bundle, working

CHAIN = "chain rule, in order"


def layer_gradients(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Gradients of activations inside the layer that backward is in: the branches of the MLP, the residual stream."""
    scope = prepared.scope
    for kind, copies in zip(prepared.kinds, heaviest_kind(prepared, stage), strict=True):
        routed = kind.mlp == "moe"
        tokens, width = (scope.routed_tokens, scope.expert_ffn) if routed else (scope.tokens, scope.ffn(kind))
        branches = ("gate", "up") if prepared.architecture.gated else ("up",)
        why = "the gradient is formed while the saved tensors are still there"
        rows = [
            working(f"gradient of {name}", kind.name, (tokens, width), scope.compute, why, CHAIN) for name in branches
        ]
        stream = (scope.tokens_sp, scope.hidden)
        rows.append(working("gradient of the stream", kind.name, stream, scope.residual, why, CHAIN))
        yield bundle("gradients inside a layer", tuple(rows), IN_LAYER_BACKWARD, copies)
