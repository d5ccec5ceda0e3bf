"""Tensors that multi-head latent attention keeps for backward (DeepSeek-V2, arXiv:2405.04434, section 2.1)."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import LatentAttention
from service.engine.ledger import Dim, Row
from service.engine.saved_tensors import attention, norms
from service.engine.saved_tensors.scope import Scope

SOURCE = "DeepSeek-V2, arXiv:2405.04434, equations 9 to 19"


def heads_of(scope: Scope, symbol: str, width: int) -> Dim:
    """All local heads of one token, `width` elements each."""
    return Dim(symbol, scope.heads.size * width, ("tp",))


def latent(scope: Scope, name: str, rank: int) -> Iterator[Row]:
    """The compressed latent with its norm; its output feeds the up-projection."""
    yield from norms.rows(scope, f"{name} latent norm", (scope.tokens_sp, Dim(f"r_{name}", rank)))


def up_projected(scope: Scope, mla: LatentAttention) -> Iterator[Row]:
    """Queries and keys of nope + rope width, values of their own width, all heads written out."""
    qk = heads_of(scope, "a·d_qk", mla.qk_head_dim)
    values = heads_of(scope, "a·d_v", mla.v_head_dim)
    for name, dim in (("query", qk), ("key", qk), ("value", values)):
        yield scope.saved(
            name, "attention", (scope.tokens, dim), scope.compute, dropped_by="mla_up_proj",
            why="attention backward needs it; latent attention writes out every head for training", source=SOURCE,
        )  # fmt: skip


def rows(scope: Scope) -> Iterator[Row]:
    """One latent-attention sublayer without its input norm."""
    mla = scope.architecture.mla
    assert mla is not None
    if mla.q_lora_rank is not None:
        yield from latent(scope, "q", mla.q_lora_rank)
    yield from latent(scope, "kv", mla.kv_lora_rank)
    yield from up_projected(scope, mla)
    if scope.kernels.attention == "flash":
        yield attention.log_sum_exp(scope)
    else:
        yield from attention.probabilities(scope)
        if scope.architecture.attention_dropout > 0:
            yield from attention.probability_dropout(scope)
    yield attention.output(scope)
    yield from attention.projection_input(scope)
