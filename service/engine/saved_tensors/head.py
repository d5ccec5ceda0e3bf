"""What lies outside the layers: embedding, final norm, head and loss."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Dim, Row
from service.engine.saved_tensors import attention, norms
from service.engine.saved_tensors.scope import Scope

CROSS_ENTROPY = "log_softmax keeps its result; nll_loss its target (torch 2.13 derivatives.yaml)"
VOCAB_PARALLEL = "Megatron-core tensor_parallel/cross_entropy.py: exponentials of this rank's slice of the logits"
MTP = "DeepSeek-V3, arXiv:2412.19437, section 2.2"
COMPILED = "torch.compile of the loss, min-cut partition traced with torch 2.13: 2·V a token and 8 bytes"
FUSED = "Liger fused_linear_cross_entropy: forward computes both gradients slice by slice"


def token_ids(scope: Scope) -> Row:
    """Input ids, which the embedding's backward scatters by."""
    return scope.saved(
        "token ids", "embedding", (scope.tokens,), "int64",
        why="the embedding gradient is scattered to these rows", source="torch.embedding: saves indices",
    )  # fmt: skip


def embedding(scope: Scope) -> Iterator[Row]:
    """Rows of the first stage."""
    yield token_ids(scope)
    if scope.architecture.dropout > 0:
        yield attention.residual_dropout(scope, "embedding")


def log_softmax(scope: Scope) -> Row:
    """Log-probabilities of the whole vocabulary, in the dtype that the loss computes in."""
    return scope.saved(
        "log-softmax of the logits", "loss", (scope.tokens, scope.vocab), scope.run.logits_dtype,
        why="cross-entropy backward is softmax minus one-hot", source=CROSS_ENTROPY,
    )  # fmt: skip


def kept_logits(scope: Scope) -> Row:
    """16-bit logits, from which a compiled loss builds the softmax again in backward."""
    return scope.saved(
        "logits", "loss", (scope.tokens, scope.vocab), scope.compute,
        why="the compiled backward forms softmax minus one-hot from them", source=COMPILED,
    )  # fmt: skip


def vocab_parallel_softmax(scope: Scope) -> Row:
    """Softmax of the local slice of the vocabulary; kept in 16 bits, in place, by Transformer Engine's fused loss."""
    fused = "cross-entropy" in scope.run.kernels
    return scope.saved(
        "softmax of the vocabulary slice", "loss", (scope.tokens, scope.vocab), scope.compute if fused else "fp32",
        why="cross-entropy backward is softmax minus one-hot", source=VOCAB_PARALLEL,
    )  # fmt: skip


def hidden_gradient(scope: Scope) -> Row:
    """Gradient of the head's input that a fused loss computes in forward already."""
    return scope.saved(
        "gradient of the head input", "loss", (scope.tokens, scope.hidden), scope.compute,
        why="the fused loss keeps gradients instead of logits", source=FUSED,
    )  # fmt: skip


def loss(scope: Scope) -> Iterator[Row]:
    """What the loss keeps between forward and backward."""
    if scope.architecture.head != "lm":
        return
    if scope.run.loss == "full":
        yield kept_logits(scope) if scope.kernels.compiled_loss else log_softmax(scope)
    elif scope.run.loss == "chunked" and scope.kernels.slices_whole_logits:
        yield kept_logits(scope)
    elif scope.run.loss == "vocab-parallel":
        yield vocab_parallel_softmax(scope)
    else:
        yield hidden_gradient(scope)


def mtp_input(scope: Scope) -> Iterator[Row]:
    """What a multi-token-prediction module keeps before its layer: two norms and their outputs side by side."""
    stream = (scope.tokens_sp, scope.hidden)
    for name in ("hidden state", "next embedding"):
        yield from norms.rows(scope, f"{name} norm", stream, keep_output=False)
    yield scope.saved(
        "hidden state and next embedding", "mtp", (scope.tokens_sp, Dim("2·h", 2 * scope.hidden.size)), scope.compute,
        why="input of the projection that joins them", source=MTP,
    )  # fmt: skip


def head(scope: Scope) -> Iterator[Row]:
    """Rows of the last stage: final norm (its output is the head's input) and loss."""
    if scope.architecture.final_norm:
        yield from norms.rows(scope, "final norm", (scope.tokens_sp, scope.hidden))
    yield from loss(scope)
