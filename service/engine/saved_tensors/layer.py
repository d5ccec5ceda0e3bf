"""One transformer layer as rows, and what stays of it under a recompute policy."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import LayerKind
from service.engine.ledger import Row
from service.engine.run import Recompute
from service.engine.saved_tensors import attention, latent_attention, mlp, moe, norms
from service.engine.saved_tensors.scope import Scope

LAYER_INPUT = "layer input"
CHECKPOINT = "Chen et al., arXiv:1604.06174: keep the inputs of segments, compute the rest again"


def boundary(scope: Scope) -> Row:
    """The layer's input: all that full recompute keeps of it."""
    return scope.saved(
        LAYER_INPUT, "residual stream", (scope.tokens_sp, scope.hidden), scope.residual,
        why="backward runs this layer's forward again from here", source=CHECKPOINT,
    )  # fmt: skip


def sublayer_mlp(scope: Scope, kind: LayerKind) -> Iterator[Row]:
    """The feed-forward part: dense or routed."""
    if kind.mlp == "moe":
        yield from moe.rows(scope)
    else:
        yield from mlp.rows(scope, scope.ffn(kind))


def rows(scope: Scope, kind: LayerKind) -> Iterator[Row]:
    """Everything one layer keeps for backward when nothing is recomputed."""
    architecture = scope.architecture
    stream = (scope.tokens_sp, scope.hidden)
    yield from norms.rows(scope, "attention norm", stream, input_row=boundary(scope))
    yield from latent_attention.rows(scope) if architecture.mla else attention.rows(scope)
    if architecture.norms_per_layer >= 4:
        yield from norms.rows(scope, "attention output norm", stream, keep_output=False)
    if architecture.dropout > 0:
        yield attention.residual_dropout(scope, "attention")
    if architecture.norms_per_layer >= 2:
        yield from norms.rows(scope, "mlp norm", stream)
    yield from sublayer_mlp(scope, kind)
    if architecture.norms_per_layer >= 4:
        yield from norms.rows(scope, "mlp output norm", stream, keep_output=False)
    if architecture.dropout > 0:
        yield attention.residual_dropout(scope, "mlp")


def recomputed(rows_of_layer: tuple[Row, ...], recompute: Recompute) -> tuple[Row, ...]:
    """What backward of one layer has to build again: all but the layer input, or what the policy dropped."""
    if recompute.kind == "full":
        return tuple(row for row in rows_of_layer if row.name != LAYER_INPUT)
    marks = dropped(recompute)
    return tuple(row for row in rows_of_layer if not marks.isdisjoint(row.dropped_by))


def dropped(recompute: Recompute) -> frozenset[str]:
    """The marks of rows that a selective policy frees: its modules, or the attention core (arXiv:2205.05198, 5)."""
    if recompute.kind != "selective":
        return frozenset()
    return frozenset(recompute.modules or ("core_attn",))
