"""What lives only for part of a step: gathered parameters, weight copies, logits, buckets, temporaries, workspaces.

Each function yields bundles of `working` rows with the moments at which they are alive and the source of the habit.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import Int, maximum, minimum, where
from service.engine.ledger import BYTES_OF, Bundle, Dim, Row, tensor
from service.engine.stage import IN_LAYER_BACKWARD, Prepared, StageView, heaviest_kind
from service.engine.state import Holding, unsharded_elements
from service.engine.timeline import ALWAYS, during

FSDP2 = "torch 2.13 torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"
FSDP1 = "torch 2.13 torch/distributed/fsdp/_flat_param.py, limit_all_gathers"
ZERO = "DeepSpeed runtime/zero: config defaults reduce_bucket_size 5e8, prefetch_bucket_size 5e7, max_live 1e9"
LOSS = "torch 2.13 _log_softmax, nll_loss and their backward"
AUTOCAST = "torch.autocast weight cache: one 16-bit copy per fp32 matrix weight until the context exits"
FOREACH = "torch.optim adamw foreach: the list of sqrt(v) in the moments' dtype"
WGRAD = "TransformerEngine module/base.py get_dummy_wgrad: one cached buffer per distinct weight shape"
CUBLAS = "torch CUDABlas.cpp getChosenWorkspaceSize; TransformerEngine cublas workspace"

#: DeepSpeed's default bucket of the reduction, in elements
REDUCE_BUCKET = 500_000_000
#: DeepSpeed's default window of parameters gathered at once, in elements
LIVE_PARAMETERS = 1_000_000_000

MIB = 1 << 20
#: cuBLAS workspace per process by compute capability (torch: 32 MiB from Hopper on, 8.125 MiB before)
CUBLAS_BYTES = {"9": 32 * MIB, "10": 32 * MIB, "12": 32 * MIB}
CUBLAS_BEFORE_HOPPER_BYTES = 8_519_680


def working(name: str, module: str, shape: tuple[Dim, ...], dtype: str, why: str, source: str) -> Row:
    """A row of the `working` term."""
    return tensor("working", name, module, shape, dtype, why=why, source=source)


def _bundle(name: str, rows: tuple[Row, ...], alive: tuple[Int, ...], copies: Int = 1) -> Bundle:
    return Bundle("working", name, rows, tuple(copies * count for count in alive))


def _elements(prepared: Prepared, block: tuple[Holding, ...]) -> Int:
    return unsharded_elements(block, prepared.architecture, prepared.layout, prepared.padded_vocab)


def gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Parameters that sharded data parallelism brings together to compute with, and their unsharded gradients.

    FSDP2: the unit in use and the next one being fetched; in backward also its gradients and the reduce-scatter's
    input in the reduction's dtype. The last unit (final norm and head) stays gathered from forward to backward.
    """
    layout, recipe = prepared.layout, prepared.recipe
    if layout.shard != "parameters" or (isinstance(layout.data_ranks, int) and layout.data_ranks == 1):
        return
    sharded = where(layout.shard_ranks("parameters") > 1, 1, 0)
    source = FSDP2 if prepared.run.fsdp_version == 2 else FSDP1
    head = Dim("P_head", _elements(prepared, prepared.blocks.head), ("tp",))
    held = during("forward_end", "loss", "first_backward", "layer_backward_first")
    why = "the last unit is used again at once in backward, so it is not split up between"
    row = working("gathered head", "head", (head,), recipe.compute, why, source)
    yield _bundle("gathered head", (row,), held, where(stage.last, sharded, 0))
    for kind, block, chosen in zip(
        prepared.kinds, prepared.blocks.layers, heaviest_kind(prepared, stage), strict=True
    ):  # fmt: skip
        unit = Dim("P_layer", _elements(prepared, block), ("tp",))
        rows = [
            working(f"gathered layer {when}", kind.name, (unit,), recipe.compute, "matrix products read it", source)
            for when in ("in use", "fetched ahead")
        ]
        if not recipe.frozen_base:
            reduce_dtype = recipe.gradients[-1]
            rows += [
                working("unsharded gradients", kind.name, (unit,), recipe.compute, "backward writes them whole", source),
                working("reduce-scatter input", kind.name, (unit,), reduce_dtype, "the reduction reads a copy", source),
            ]  # fmt: skip
        yield _bundle("gathered layers", tuple(rows), IN_LAYER_BACKWARD, chosen * sharded)


def kept_gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Layers that stay gathered from forward to backward when they are not split up again in between."""
    layout = prepared.layout
    if layout.shard != "parameters" or prepared.run.reshard_after_forward:
        return
    sharded = where(layout.shard_ranks("parameters") > 1, 1, 0)
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first")
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        unit = Dim("P_layer", _elements(prepared, block), ("tp",))
        why = "reshard_after_forward is off: backward, or the next micro-batch, finds them gathered"
        row = working("layer kept gathered", kind.name, (unit,), prepared.recipe.compute, why, FSDP2)
        yield _bundle("layers kept gathered", (row,), alive, layers * sharded)


def weight_casts(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """16-bit copies of fp32 matrix weights that autocast makes and caches until forward ends."""
    recipe, layout = prepared.recipe, prepared.layout
    if not recipe.casts or recipe.frozen_base or layout.shard == "parameters":
        return
    alive = during("forward_end", "loss", "first_backward", "layer_backward_first")
    why = "matrix products run in 16 bits while the stored weights are fp32"
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        copy = Dim("P_layer", _elements(prepared, block), ("tp",))
        row = working("16-bit weight copies", kind.name, (copy,), recipe.compute, why, AUTOCAST)
        yield _bundle("weight copies of layers", (row,), alive, layers)
    table = Dim("h·V", prepared.scope.vocab.size * prepared.architecture.hidden_size, ("tp",))
    row = working("16-bit weight copy of the head", "head", (table,), recipe.compute, why, AUTOCAST)
    yield _bundle("weight copy of the head", (row,), alive, where(stage.last, 1, 0))


#: Logits-sized tensors alive besides the saved one, as dtypes: at the loss, and in the first backward operation.
#: full: 16-bit logits and their fp32 copy (with the saved log-softmax 10 bytes an entry), then the gradients of
#: log-softmax and of the fp32 logits (12).
def logits(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Logits and their gradients around the loss: usually the peak when layers are recomputed."""
    scope, run = prepared.scope, prepared.run
    if prepared.architecture.head == "classification":
        return
    shape = (scope.tokens, scope.vocab)
    last = where(stage.last, 1, 0)
    upcast = scope.compute != run.logits_dtype
    if run.loss == "full":
        forward = [working("logits", "head", shape, scope.compute, "output of the head", LOSS)]
        if upcast:
            forward.append(working("logits upcast", "loss", shape, run.logits_dtype, "the loss computes in it", LOSS))
        backward = [
            working(f"gradient of the {what}", "loss", shape, run.logits_dtype, "softmax minus one-hot", LOSS)
            for what in ("log-softmax", "logits")
        ]
    elif run.loss == "vocab-parallel":
        in_place = "cross-entropy" in run.kernels
        why = "this rank's slice of the vocabulary"
        forward = [] if in_place else [working("logits", "head", shape, scope.compute, why, LOSS)]
        backward = forward
    else:
        forward = backward = list(_sliced_logits(prepared))
    yield _bundle("logits", tuple(forward), during("loss"), last)
    yield _bundle("gradients of the logits", tuple(backward), during("first_backward"), last)


#: torchtitan and TRL compute the loss in 8 slices; Liger in slices of about tokens·h/V
LOSS_SLICES = 8


def _sliced_logits(prepared: Prepared) -> Iterator[Row]:
    scope = prepared.scope
    tokens = Dim("b·s", -(-scope.tokens.size // LOSS_SLICES), scope.tokens.sharded_by)
    for name, dtype in (("logits slice", scope.compute), ("logits slice upcast", "fp32"), ("its gradient", "fp32")):
        yield working(name, "loss", (tokens, scope.vocab), dtype, "one slice of the tokens at a time", LOSS)


def layer_gradients(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Gradients of activations inside the layer that backward is in: the branches of the MLP, the residual stream."""
    scope = prepared.scope
    for kind, copies in zip(prepared.kinds, heaviest_kind(prepared, stage), strict=True):
        routed = kind.mlp == "moe"
        tokens, width = (scope.routed_tokens, scope.expert_ffn) if routed else (scope.tokens, scope.ffn(kind))
        branches = ("gate", "up") if prepared.architecture.gated else ("up",)
        why = "the gradient is formed while the saved tensors are still there"
        rows = [
            working(f"gradient of {name}", kind.name, (tokens, width), scope.compute, why, "chain rule, in order")
            for name in branches
        ]
        stream = (scope.tokens_sp, scope.hidden)
        rows.append(working("gradient of the stream", kind.name, stream, scope.residual, why, "chain rule, in order"))
        yield _bundle("gradients inside a layer", tuple(rows), IN_LAYER_BACKWARD, copies)


def optimizer_temporaries(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """`foreach` optimizers make one list of temporaries as large as the parameters of this rank."""
    if prepared.run.optimizer_impl != "foreach" or "adamw" not in prepared.recipe.optimizer:
        return
    share = local_parameters(prepared, stage)
    dtype = prepared.recipe.master or prepared.recipe.weights
    why = "one operation over all parameters at once needs all of its results at once"
    row = working("foreach temporary", "optimizer", (Dim("P", share, ("tp", "pp", "dp·cp")),), dtype, why, FOREACH)
    yield _bundle("optimizer temporaries", (row,), during("optimizer_step"))


def local_parameters(prepared: Prepared, stage: StageView) -> Int:
    """Trainable parameters that the optimizer of this rank updates."""
    size = BYTES_OF[prepared.recipe.master or prepared.recipe.weights]
    term = "master_weights" if prepared.recipe.master else "gradients"
    per_element = size if prepared.recipe.master else prepared.recipe.gradient_bytes
    total: Int = 0
    pieces = [
        (prepared.state("embedding", prepared.blocks.embedding), where(stage.first, 1, 0)),
        (prepared.state("head", prepared.blocks.head), where(stage.last, 1, 0)),
        *zip(prepared.layer_state, stage.layers, strict=True),
    ]
    for state, copies in pieces:
        for row in state.of(term):  # type: ignore[arg-type]
            total = total + row.bytes * copies // per_element
    return total


def buckets(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Buffers of the gradient reduction: DeepSpeed's bucket, DDP's copies."""
    recipe, layout = prepared.recipe, prepared.layout
    if prepared.stack.name == "deepspeed" and layout.shard != "none":
        size = minimum(REDUCE_BUCKET, maximum(local_parameters(prepared, stage), 1))
        row = working(
            "reduce bucket", "zero", (Dim("bucket", size),), recipe.compute, "gradients are reduced from it", ZERO
        )
        yield _bundle("reduce bucket", (row,), during("layer_backward_first", "layer_backward_last", "backward_end"))


def workspaces(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Scratch of cuBLAS, taken from torch's allocator and never given back."""
    capability = prepared.gpu.compute_capability
    if capability is None:
        return
    size = CUBLAS_BYTES.get(capability.split(".")[0], CUBLAS_BEFORE_HOPPER_BYTES)
    rows = [working("cuBLAS workspace", "workspace", (Dim("bytes", size),), "uint8", "split-K partial sums", CUBLAS)]
    if "te" in prepared.run.kernels:
        rows.append(
            working(
                "Transformer Engine workspace", "workspace", (Dim("bytes", size),), "uint8", "cublasLt scratch", CUBLAS
            )
        )
    yield _bundle("workspaces", tuple(rows), ALWAYS)


def bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Every transient of one stage."""
    for source in (
        gathered, kept_gathered, weight_casts, logits, layer_gradients, optimizer_temporaries, buckets, workspaces,
    ):  # fmt: skip
        yield from source(prepared, stage)
