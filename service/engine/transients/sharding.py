"""Gathered parameters and reduction buffers of sharded data parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.elementwise import Int, where
from service.engine.ledger import BYTES_OF, Bundle, Dim, Row
from service.engine.recipe import QUANTIZED_BASES
from service.engine.stage import IN_LAYER_BACKWARD, Prepared, StageView, heaviest_kind
from service.engine.state import Holding, unsharded_weight_bytes
from service.engine.timeline import during
from service.engine.transients.parts import bundle, elements, working

FSDP2 = "torch 2.13 torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"
FSDP1 = "torch 2.13 torch/distributed/fsdp/_flat_param.py, limit_all_gathers"
FSDP1_HOOKS = "torch 2.13 torch/distributed/fsdp/_runtime_utils.py _register_post_backward_reshard_only_hook"

IN_BACKWARD = during("layer_backward_first", "layer_backward_last", "backward_end")
UNTIL_LAYERS = during("forward_end", "loss", "first_backward", "layer_backward_first")


def _sharded(prepared: Prepared) -> Int:
    """1 where parameters are split over more than one rank, else 0."""
    layout = prepared.layout
    if layout.shard != "parameters":
        return 0
    return where(layout.shard_ranks("parameters") > 1, 1, 0)


def _unit(prepared: Prepared, name: str, symbol: str, size: Int, dtype: str, why: str) -> Row:
    source = FSDP2 if prepared.run.fsdp_version == 2 else FSDP1
    return working(name, "sharding", (Dim(symbol, size, ("tp",)),), dtype, why, source)


def _gathered_bytes(prepared: Prepared, block: tuple[Holding, ...]) -> Int:
    """Bytes of a unit when it is brought together: in the compute dtype, 4-bit blocks as they are stored."""
    recipe = prepared.recipe
    if recipe.frozen_base and recipe.base_weights in QUANTIZED_BASES:
        return unsharded_weight_bytes(block, prepared.architecture, prepared.layout, prepared.padded_vocab)
    return elements(prepared, block) * BYTES_OF[recipe.compute]


def _gathered_unit(prepared: Prepared, name: str, symbol: str, size: Int, why: str) -> Row:
    return _unit(prepared, name, symbol, size, "uint8", why)


def gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Parameters that sharded data parallelism brings together to compute with, and their unsharded gradients."""
    if isinstance(sharded := _sharded(prepared), int) and sharded == 0:
        return
    if prepared.run.fsdp_version == 2:
        yield from _outer_units(prepared, stage, sharded)
    else:
        yield from _root_unit(prepared, stage, sharded)
    for kind, block, chosen in zip(
        prepared.kinds, prepared.blocks.layers, heaviest_kind(prepared, stage), strict=True
    ):  # fmt: skip
        size = _gathered_bytes(prepared, block)
        rows = [
            _gathered_unit(prepared, f"gathered layer {when}", "P_layer", size, "matrix products read it")
            for when in ("in use", "fetched ahead")
        ]
        if not prepared.recipe.frozen_base:
            rows += _layer_reduction(prepared, elements(prepared, block))
        yield bundle(f"gathered {kind.name} layers", tuple(rows), IN_LAYER_BACKWARD, chosen * sharded)


def _layer_reduction(prepared: Prepared, size: Int) -> list[Row]:
    """Unsharded gradients of one layer. FSDP2 copies them into the reduction's dtype and waits for the layer before;
    FSDP1 reduces the flat gradient in the compute dtype (Accelerate sets reduce_dtype to it)."""
    recipe = prepared.recipe
    rows = [_unit(prepared, "unsharded gradients", "P_layer", size, recipe.compute, "backward writes them whole")]
    if prepared.run.fsdp_version == 2:
        names = ("reduce-scatter input", "reduce-scatter input of the layer before")
        why = "the reduction reads a copy in its own dtype"
        rows += [_unit(prepared, name, "P_layer", size, recipe.gradients[-1], why) for name in names]
    return rows


def _outer_units(prepared: Prepared, stage: StageView, sharded: Int) -> Iterator[Bundle]:
    """FSDP2's units outside the layers: norm and head stay gathered between forward and backward, the embedding is
    gathered for its own backward at the end."""
    recipe = prepared.recipe
    parts = (
        ("head", prepared.blocks.head, stage.last, UNTIL_LAYERS, during("layer_backward_first")),
        ("embedding", prepared.blocks.embedding, stage.first, during("backward_end"), during("backward_end")),
    )
    for name, block, here, held, reduced in parts:
        size, copies = elements(prepared, block), where(here, sharded, 0)
        whole, why = _gathered_bytes(prepared, block), "used again at once in backward"
        row = _gathered_unit(prepared, f"gathered {name}", f"P_{name}", whole, why)
        yield bundle(f"gathered {name}", (row,), held, copies)
        if not recipe.frozen_base:
            why = "backward writes them whole, the reduction reads a copy"
            rows = tuple(
                _unit(prepared, f"{what} of the {name}", f"P_{name}", size, dtype, why)
                for what, dtype in (
                    ("unsharded gradients", recipe.compute), ("reduce-scatter input", recipe.gradients[-1]),
                )
            )  # fmt: skip
            yield bundle(f"reduction of the {name}", rows, reduced, copies)


def _root_unit(prepared: Prepared, stage: StageView, sharded: Int) -> Iterator[Bundle]:
    """FSDP1's root unit, embedding and head in one flat parameter: gathered from the first use to the end of backward;
    its flat gradient exists from the head's backward on."""
    recipe = prepared.recipe
    first, last = where(stage.first, 1, 0), where(stage.last, 1, 0)
    size: Int = elements(prepared, prepared.blocks.embedding) * first + elements(prepared, prepared.blocks.head) * last
    held = during(
        "forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last", "backward_end"
    )
    embedding, head = prepared.blocks.embedding, prepared.blocks.head
    whole: Int = _gathered_bytes(prepared, embedding) * first + _gathered_bytes(prepared, head) * last
    why = "the root is never split up in between"
    row = _gathered_unit(prepared, "gathered root unit", "P_root", whole, why)
    yield bundle("gathered root unit", (row,), held, sharded)
    if not recipe.frozen_base:
        why = "the flat gradient takes head and embedding"
        row = _unit(prepared, "unsharded gradients of the root unit", "P_root", size, recipe.compute, why)
        yield bundle("gradients of the root unit", (row,), IN_BACKWARD, sharded)


def kept_gathered(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Layers that stay gathered from forward to backward when they are not split up again in between."""
    if prepared.run.reshard_after_forward or (isinstance(sharded := _sharded(prepared), int) and sharded == 0):
        return
    why = "reshard_after_forward is off: backward, or the next micro-batch, finds them gathered"
    for kind, block, layers in zip(prepared.kinds, prepared.blocks.layers, stage.layers, strict=True):
        row = _gathered_unit(prepared, "layer kept gathered", "P_layer", _gathered_bytes(prepared, block), why)
        yield bundle(f"{kind.name} layers kept gathered", (row,), UNTIL_LAYERS, layers * sharded)


def frozen_hooks(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """FSDP1 over frozen weights: units without gradients hang a hook on their inputs, which keeps each layer's input
    and the gradient that reaches it until backward ends. Twelve runs of fms-acceleration show both, to the percent."""
    if not prepared.recipe.frozen_base or prepared.run.fsdp_version != 1 or prepared.recipe.precision == "amp":
        return  # fp32 bases under autocast (atorch) do not show it: adapters there share their layer's unit
    scope, sharded = prepared.scope, _sharded(prepared)
    layers: Int = 0
    for count in stage.layers:
        layers = layers + count
    shape = (scope.tokens, scope.hidden)
    why = "a hook on the layer's input keeps it and its gradient"
    for what, alive in (("inputs", layers - 1), ("input gradients", layers)):
        row = working(f"{what} held by hooks", "sharding", shape, scope.compute, why, FSDP1_HOOKS)
        yield bundle(f"{what} held by hooks", (row,), during("layer_backward_last", "backward_end"), alive * sharded)
