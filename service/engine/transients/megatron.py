"""What Megatron-core and Transformer Engine hold besides the ledger of the layers.

Weight-gradient dummies, the backward of the output layer, the widest point inside an MLP's backward, and the buffers
that pipeline ranks send and receive into.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import Architecture, LayerKind
from service.engine.elementwise import Int, ceil_div, maximum, where
from service.engine.ledger import BYTES_OF, Bundle, Dim, Row, total_bytes
from service.engine.stage import IN_LAYER_BACKWARD, Prepared, StageView, heaviest_kind
from service.engine.timeline import ALWAYS, during
from service.engine.transients.optimizer import local_parameters
from service.engine.transients.parts import bundle, working

DUMMY = "TransformerEngine pytorch/module/base.py get_dummy_wgrad: one cached buffer per weight shape"
OUTPUT_LAYER = "Megatron-core tensor_parallel/layers.py LinearWithGradAccumulationAndAsyncCommunication.backward"
P2P = "Megatron-core pipeline_parallel/p2p_communication.py: receive buffers are torch.empty of the activation's shape"
SCORES_BUFFER = "Megatron-core dot_product_attention.py: get_global_memory_buffer('mpu') for the product q·k"
MAIN_GRADIENTS = (
    "Megatron-core optimizer/distrib_optimizer.py _copy_model_grads_to_main_grads: shard_model_grad.float()"
)
GOLDEN = "Megatron-LM tests/functional_tests golden values, mem-max-allocated-bytes"
#: buffers of one activation that an inner pipeline rank holds besides the chunk it works on: the next input, the
#: gradient on its way in, the output on its way out
P2P_BUFFERS = 3

Shape = tuple[int, int, str]


def linear_shapes(architecture: Architecture, kind: LayerKind) -> Iterator[Shape]:
    """(rows, columns, degree that divides them) of every weight of one layer as Transformer Engine stores it: queries,
    keys and values in one matrix, gate and up in one."""
    hidden, mla, moe = architecture.hidden_size, architecture.mla, architecture.moe
    if mla is None:
        yield architecture.query_width + 2 * architecture.kv_width, hidden, "tp"
    else:
        if mla.q_lora_rank is None:
            yield architecture.heads * mla.qk_head_dim, hidden, "tp"
        else:
            yield mla.q_lora_rank, hidden, ""
            yield architecture.heads * mla.qk_head_dim, mla.q_lora_rank, "tp"
        yield mla.kv_lora_rank + mla.qk_rope_head_dim, hidden, ""
        yield architecture.heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank, "tp"
    yield hidden, architecture.value_width, "tp"
    branches = 2 if architecture.gated else 1
    widths = [(kind.ffn_size or 0, "tp")]
    if kind.mlp == "moe" and moe is not None:
        widths = [(moe.ffn_size, "etp"), (moe.shared_width, "tp")]
    for width, degree in widths:
        if width:
            yield branches * width, hidden, degree
            yield hidden, width, degree


def weight_gradient_dummies(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """One 16-bit buffer per distinct local weight shape, handed to autograd when the real gradient was added to the
    main gradient buffer already (gradient-accumulation fusion)."""
    kernels = prepared.run.kernels
    if not {"te", "wgrad-accumulation"} <= kernels or prepared.recipe.frozen_base:
        return
    seen: set[Shape] = set()
    divisors = {"": 1, "tp": prepared.layout.tp, "etp": prepared.layout.etp}
    for kind, layers in zip(prepared.kinds, stage.layers, strict=True):
        rows = []
        for shape in linear_shapes(prepared.architecture, kind):
            if shape in seen:
                continue
            seen.add(shape)
            height, width, degree = shape
            dims = (Dim("out", height), Dim("in", ceil_div(width, divisors[degree]), (degree,) if degree else ()))
            why = "autograd wants a gradient although the kernel has accumulated it already"
            rows.append(working("weight-gradient dummy", kind.name, dims, prepared.scope.compute, why, DUMMY))
        if rows:
            yield bundle("weight-gradient dummies", tuple(rows), ALWAYS, where(layers > 0, 1, 0))


def output_layer_backward(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Gradients that the output layer forms while the logits' gradient is still there.

    The fp32 softmax of the unfused loss is gone by then, so only what is larger than it counts; Transformer Engine's
    fused loss writes the gradient into the logits, so all of it does.
    """
    scope, run = prepared.scope, prepared.run
    if prepared.architecture.head != "lm":
        return
    size = BYTES_OF[scope.compute]
    hidden = scope.tokens.size * scope.hidden.size * size
    total: Int = hidden * where(prepared.layout.sequence_divisor > 1, 2, 1)
    if not prepared.recipe.frozen_base:
        total = total + scope.vocab.size * scope.hidden.size * size
    if "cross-entropy" not in run.kernels:
        total = maximum(total - scope.tokens.size * scope.vocab.size * BYTES_OF["fp32"], 0)
    why = "weight gradient of the head, gradient of its input, and the gathered input"
    row = working("gradients of the output layer", "head", (Dim("h·V + 2·b·s·h", total),), "uint8", why, OUTPUT_LAYER)
    yield bundle("output layer backward", (row,), during("first_backward"), where(stage.last, 1, 0))


def last_hidden_states(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """One hidden-sized tensor beyond the ledger at the loss. Nobody says which it is; twenty golden tests of two hidden
    sizes show it to the MiB."""
    scope = prepared.scope
    why = "seen in measurements; not identified"
    row = working("hidden states at the loss", "head", (scope.tokens, scope.hidden), scope.compute, why, GOLDEN)
    yield bundle("hidden states at the loss", (row,), during("loss", "first_backward"), where(stage.last, 1, 0))


def mlp_backward(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Beyond the gradients of gate and up: the gradient of the product before them, and the gathered norm output."""
    scope = prepared.scope
    for kind, copies in zip(prepared.kinds, heaviest_kind(prepared, stage), strict=True):
        routed = kind.mlp == "moe"
        tokens, width = (scope.routed_tokens, scope.expert_ffn) if routed else (scope.tokens, scope.ffn(kind))
        why = "input of the activation's backward, alive until its output is complete"
        rows = [working("gradient of the down projection input", kind.name, (tokens, width), scope.compute, why, DUMMY)]
        yield bundle("MLP backward", tuple(rows), IN_LAYER_BACKWARD, copies)
        why = "the weight gradient needs the whole sequence"
        shape = (scope.tokens, scope.hidden)
        gathered = working("gathered norm output", kind.name, shape, scope.compute, why, OUTPUT_LAYER)
        split = where(prepared.layout.sequence_divisor > 1, 1, 0)
        yield bundle("MLP backward", (gathered,), IN_LAYER_BACKWARD, copies * split)


def scores_backward(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Gradients of the probabilities and of the scores in unfused attention, as far as they outgrow the MLP's tensors,
    which are gone by then."""
    scope = prepared.scope
    if prepared.run.attention != "eager":
        return
    size = BYTES_OF[scope.compute]
    scores = scope.batch.size * scope.heads.size * scope.queries.size * scope.keys.size
    for kind, rows, copies in zip(
        prepared.kinds, prepared.layer_rows, heaviest_kind(prepared, stage), strict=True
    ):  # fmt: skip
        freed = total_bytes(row for row in rows if row.module in ("mlp", "moe", "shared experts"))
        more = Dim("2·b·a·s² − MLP", maximum(2 * scores * size - freed, 0), ("tp",))
        why = "softmax backward reads one and writes the other"
        row = working("gradients of the attention scores", kind.name, (more,), "uint8", why, SCORES_BUFFER)
        yield bundle("attention backward", (row,), IN_LAYER_BACKWARD, copies)


def pipeline_buffers(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Activations on their way between pipeline ranks."""
    scope = prepared.scope
    inner = where(prepared.layout.pp > 1, P2P_BUFFERS, 0)
    why = "the next micro-batch arrives, and the last one leaves, while this one is computed"
    shape = (scope.tokens_sp, scope.hidden)
    row = working("pipeline send and receive", "pipeline", shape, scope.residual, why, P2P)
    yield bundle("pipeline buffers", (row,), during(*_IN_PIPELINE), inner)


_IN_PIPELINE = ("forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last")


def gradient_copies(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """fp32 copies of the local shard's gradients that the step makes when the gradient buffer is not fp32.

    The precision-aware optimizer (16-bit moments) reads the gradients as they are.
    """
    recipe = prepared.recipe
    if recipe.master is None or recipe.gradients[-1] == "fp32" or recipe.moments != "fp32":
        return
    if "optimizer" in prepared.run.offload:
        return
    shard = Dim("P", local_parameters(prepared, stage), ("tp", "pp", "dp·cp"))
    why = "the update is computed in fp32"
    row = working("fp32 gradients of the step", "optimizer", (shard,), "fp32", why, MAIN_GRADIENTS)
    yield bundle("gradient copies", (row,), during("optimizer_step"))


def scores_buffer(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """The buffer that Megatron's own attention writes q·k into; Transformer Engine has none that lasts."""
    if prepared.run.attention != "eager" or "te" in prepared.run.kernels:
        return
    rows: tuple[Row, ...] = (_scores(prepared),)
    yield bundle("scores buffer", rows, ALWAYS)


def _scores(prepared: Prepared) -> Row:
    scope = prepared.scope
    shape = (scope.batch, scope.heads, scope.queries, scope.keys)
    why = "kept for the next layer, so that it is not allocated again"
    return working("product of queries and keys", "attention", shape, scope.compute, why, SCORES_BUFFER)
