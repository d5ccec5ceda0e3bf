"""Tensors that multi-head, grouped-query and multi-query attention keep for backward."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import where
from service.engine.ledger import Dim, Row
from service.engine.saved_tensors import norms
from service.engine.saved_tensors.scope import Scope

FLASH = "FlashAttention-2, arXiv:2307.08691, section 3.1: q, k, v, output and the log-sum-exp"
SCORES = "softmax and the two batched products save their inputs and results (torch 2.13 derivatives.yaml)"
TE_LINEAR = "TransformerEngine pytorch/module/linear.py: saves the quantised input"
TE_FLASH = "TransformerEngine attention/dot_product_attention/backends.py: sbhd is transposed to bshd and back"
TE_RING = "TransformerEngine context_parallel.py AttnFuncWithCPAndKVP2P: p2p_comm_buffers[0] = cat(k, v)"
DROPOUT = "torch.nn.functional.dropout on CUDA: a bool mask, one byte an element"


def query(scope: Scope) -> Row:
    """Queries after positions were applied."""
    return scope.saved(
        "query", "attention", (scope.tokens, scope.query), scope.compute,
        why="attention backward forms the gradients of q and k from both", source=FLASH,
    )  # fmt: skip


def key(scope: Scope) -> Row:
    """Keys after positions were applied; repeated to every query head where the code does so."""
    width = scope.query if scope.kernels.expand_kv else scope.kv
    return scope.saved(
        "key", "attention", (scope.tokens, width), scope.compute,
        why="attention backward forms the gradients of q and k from both", source=FLASH,
    )  # fmt: skip


def value(scope: Scope) -> Row:
    """Values; repeated to every query head where the code does so."""
    width = scope.query if scope.kernels.expand_kv else scope.kv
    return scope.saved(
        "value", "attention", (scope.tokens, width), scope.compute,
        why="attention backward needs the values to differentiate the probabilities", source=FLASH,
    )  # fmt: skip


def log_sum_exp(scope: Scope) -> Row:
    """One fp32 per query and head, from which flash attention rebuilds the probabilities."""
    return scope.saved(
        "log-sum-exp", "attention", (scope.tokens, scope.heads), "fp32", dropped_by="core_attn",
        why="lets backward recompute the probabilities instead of storing s² of them", source=FLASH,
    )  # fmt: skip


def probabilities(scope: Scope) -> Iterator[Row]:
    """The softmax of the scores, s² per head: what eager attention keeps and flash attention does not."""
    shape = (scope.batch, scope.heads, scope.queries, scope.keys)
    for dtype in scope.kernels.score_dtypes:
        yield scope.saved(
            f"attention probabilities ({dtype})", "attention", shape, dtype, dropped_by="core_attn",
            why="softmax backward and the product with v both need them", source=SCORES,
        )  # fmt: skip


def probability_dropout(scope: Scope) -> Iterator[Row]:
    """Mask and result of dropout on the probabilities (eager attention only; flash draws them again from a seed)."""
    shape = (scope.batch, scope.heads, scope.queries, scope.keys)
    yield scope.saved(
        "attention dropout mask", "attention", shape, "bool", dropped_by="core_attn",
        why="backward must drop the same probabilities", source=DROPOUT,
    )  # fmt: skip
    yield scope.saved(
        "attention probabilities after dropout", "attention", shape, scope.compute, dropped_by="core_attn",
        why="the product with v saves what it read", source=SCORES,
    )  # fmt: skip


def output(scope: Scope) -> Row:
    """Attention output: input of the output projection, and of flash attention's own backward.

    Where the projection keeps a copy of its own, recomputing the attention core frees this one.
    """
    dropped_by = "core_attn" if scope.linear_input != scope.compute else ""
    return scope.saved(
        "attention output", "attention", (scope.tokens, scope.value), scope.compute, dropped_by=dropped_by,
        why="input of the output projection, and backward of attention reads it again", source=FLASH,
    )  # fmt: skip


def projection_input(scope: Scope) -> Iterator[Row]:
    """What the output projection keeps when it is not the attention output itself: quantised, or laid out anew."""
    if scope.linear_input != scope.compute:
        yield scope.saved(
            "quantised attention output", "attention", (scope.tokens, scope.value), scope.linear_input,
            why="the projection multiplies in 8 bits; attention backward reads the 16-bit output", source=TE_LINEAR,
        )  # fmt: skip
    elif scope.kernels.reorders_output:
        # one sequence has the same order either way
        tokens = scope.tokens._replace(size=where(scope.run.micro_batch > 1, scope.tokens.size, 0))
        yield scope.saved(
            "reordered attention output", "attention", (tokens, scope.value), scope.compute,
            why="flash attention writes batch first, the projection reads sequence first", source=TE_FLASH,
        )  # fmt: skip


def fused_projection(scope: Scope) -> Iterator[Row]:
    """Keys and values as views of the fused projection, which a view of the queries keeps whole.

    Ring attention sends copies of keys and values round; with rotary positions the queries are a new tensor too.
    """
    if scope.kernels.ring_sends_copies and scope.architecture.position != "rope":
        tokens = scope.tokens._replace(size=where(scope.layout.cp > 1, scope.tokens.size, 0))
        shape = (tokens, Dim("2·K", 2 * scope.kv.size, ("tp",)))
        yield scope.saved(
            "keys and values in the fused projection", "attention", shape, scope.compute,
            why="they share their storage with the queries that are kept", source=TE_RING,
        )  # fmt: skip


def residual_dropout(scope: Scope, where: str) -> Row:
    """Mask of dropout on what a sublayer adds to the residual stream."""
    return scope.saved(
        f"{where} dropout mask", "dropout", (scope.tokens_sp, scope.hidden), "bool",
        why="backward must drop the same elements", source=DROPOUT,
    )  # fmt: skip


def core(scope: Scope) -> Iterator[Row]:
    """From projected q, k, v to the attention output."""
    yield query(scope)
    yield key(scope)
    yield value(scope)
    if scope.kernels.attention == "flash":
        yield log_sum_exp(scope)
    else:
        yield from probabilities(scope)
        if scope.architecture.attention_dropout > 0:
            yield from probability_dropout(scope)
    yield output(scope)
    yield from projection_input(scope)
    yield from fused_projection(scope)


def rows(scope: Scope) -> Iterator[Row]:
    """One attention sublayer without its norm: q/k norms, core, output."""
    if scope.architecture.qk_norm != "none":
        yield from norms.rows(scope, "query norm", (scope.tokens, scope.query), keep_output=False)
        yield from norms.rows(scope, "key norm", (scope.tokens, scope.kv), keep_output=False)
    yield from core(scope)
