"""Tensors that a norm keeps for its backward."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Dim, Row
from service.engine.saved_tensors.scope import Scope

FUSED = "torch.nn.functional.rms_norm / layer_norm, saved set read from torch 2.13 derivatives.yaml"
UPCAST = "transformers 5.24 LlamaRMSNorm: computes in fp32, multiplies the weight in the input's dtype"


def statistics_per_row(scope: Scope) -> int:
    """fp32 values that a norm keeps per normalised row: 1/rms, or mean and 1/σ."""
    return 1 if scope.architecture.norm == "rmsnorm" else 2


def upcasts(scope: Scope) -> bool:
    """Whether the norm is Python code that copies its input to fp32 first."""
    return scope.kernels.norm == "upcast" and scope.architecture.norm == "rmsnorm"


def norm_input(scope: Scope, where: str, shape: tuple[Dim, ...]) -> Row:
    """What is normalised: the residual stream (or q, k) as it comes in; fp32 once more where the code upcasts."""
    if upcasts(scope):
        return scope.saved(
            f"{where} input in fp32", "norm", shape, "fp32", dropped_by="layernorm",
            why="the fp32 copy that the mean square and the scaling were computed from", source=UPCAST,
        )  # fmt: skip
    return scope.saved(
        f"{where} input", "norm", shape, scope.residual, why="the gradient of a norm needs its input", source=FUSED
    )


def norm_statistics(scope: Scope, where: str, shape: tuple[Dim, ...]) -> Row:
    """1/rms (or mean and 1/σ) of each normalised row, fp32."""
    rows = (*shape[:-1], Dim("1" if statistics_per_row(scope) == 1 else "2", statistics_per_row(scope)))
    return scope.saved(
        f"{where} statistics", "norm", rows, "fp32", dropped_by="layernorm",
        why="the scale that was applied, one per row", source=FUSED,
    )  # fmt: skip


def normalised(scope: Scope, where: str, shape: tuple[Dim, ...]) -> Row:
    """x̂ before the weight, kept apart by code that multiplies the weight in a separate operation."""
    return scope.saved(
        f"{where} normalised", "norm", shape, scope.residual, dropped_by="layernorm",
        why="the gradient of the norm weight is the product with x̂", source=UPCAST,
    )  # fmt: skip


def norm_output(scope: Scope, where: str, shape: tuple[Dim, ...]) -> Row:
    """What the next matrix product reads, in the compute dtype."""
    return scope.saved(
        f"{where} output", "norm", shape, scope.linear_input, dropped_by="layernorm",
        why="input of the next linear layer: its weight gradient needs it", source="torch.mm: saves self",
    )  # fmt: skip


def rows(
    scope: Scope, where: str, shape: tuple[Dim, ...], *, keep_output: bool = True, input_row: Row | None = None
) -> Iterator[Row]:
    """One norm over the last dimension of `shape`; `keep_output` False when nothing reads its output again.

    `input_row` is the tensor that comes in, when it already has a row; code that upcasts keeps a copy of its own,
    unless the tensor is fp32 already.
    """
    if input_row is not None and not (upcasts(scope) and scope.residual != "fp32"):
        yield input_row
    else:
        yield norm_input(scope, where, shape)
    yield norm_statistics(scope, where, shape)
    if upcasts(scope):
        yield normalised(scope, where, shape)
    if keep_output:
        yield norm_output(scope, where, shape)
