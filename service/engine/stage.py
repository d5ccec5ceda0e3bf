"""One pipeline stage of a run: everything it holds, as bundles of rows that know when they are alive.

`Prepared` computes once what all stages share (rows of one layer of each kind, state of each block); `bundles` counts
how many copies a stage holds. Stage numbers and degrees may be arrays, one entry per layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from service.engine import offload, pipeline
from service.engine.architecture import Architecture, LayerKind, layer_kinds
from service.engine.elementwise import Bool, Int, ceil_div, maximum, minimum, repeated, where
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS, Bundle, Row, TermName, kept, total_bytes
from service.engine.parameters import parameter_groups
from service.engine.recipe import Recipe
from service.engine.run import Run
from service.engine.saved_tensors import head, layer, torchtitan
from service.engine.saved_tensors.scope import Kernels, Scope, kernels, padded_vocab
from service.engine.stacks import Stack
from service.engine.state import Blocks, Holding, StateRows, blocks, holdings, state_rows
from service.engine.timeline import ALWAYS, during, from_moment

IN_LAYER_BACKWARD = during("layer_backward_first", "layer_backward_last")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A question with everything computed that does not depend on the stage."""

    architecture: Architecture
    recipe: Recipe
    layout: Layout
    run: Run
    stack: Stack
    gpu: Gpu

    @cached_property
    def kernels(self) -> Kernels:
        return kernels(self.stack, self.run, self.recipe, self.gpu)

    @property
    def traced(self) -> bool:
        """Whether the modelling code of this run is written down as a program (Hugging Face's, run eagerly)."""
        hugging_face = self.stack.name == "huggingface" or (
            self.stack.name == "deepspeed" and self.run.vocab_multiple is None
        )
        return hugging_face and not self.run.compile

    @cached_property
    def scope(self) -> Scope:
        return Scope(self.architecture, self.run, self.layout, self.recipe, self.kernels)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        return layer_kinds(self.architecture)

    @cached_property
    def blocks(self) -> Blocks:
        return blocks(self.architecture, self.recipe)

    @cached_property
    def padded_vocab(self) -> Int:
        return padded_vocab(self.architecture, self.run, self.layout)

    @cached_property
    def on_host(self) -> dict[TermName, int]:
        """Thousandths of each term that offloading keeps in host memory."""
        return offload.offloaded_terms(self.run, self.recipe, self.stack)

    @cached_property
    def layer_rows(self) -> tuple[tuple[Row, ...], ...]:
        """Everything one layer of each kind keeps when nothing is recomputed, in the order of `kinds`."""
        return tuple(tuple(layer.rows(self.scope, kind)) for kind in self.kinds)

    @cached_property
    def kept_rows(self) -> tuple[tuple[Row, ...], ...]:
        """What one layer keeps outside the layers that are recomputed in full."""
        if self.kernels.op_policy:
            scope = self.scope
            return tuple(tuple(torchtitan.op_policy(scope, kind, layer.boundary(scope))) for kind in self.kinds)
        marks = layer.dropped(self.run.recompute)
        return tuple(tuple(kept(rows, marks)) for rows in self.layer_rows)

    @cached_property
    def layer_state(self) -> tuple[StateRows, ...]:
        """State of one layer of each kind."""
        pairs = zip(self.kinds, self.blocks.layers, strict=True)
        return tuple(self.state(f"{kind.name} layers", block) for kind, block in pairs)

    @cached_property
    def outside_state(self) -> tuple[StateRows, StateRows, StateRows]:
        """State of the embedding, of the head, and of the second copy of a tied table."""
        names = (("embedding", self.blocks.embedding), ("head", self.blocks.head), ("tied head", self.blocks.tied_copy))
        embedding, head, tied = (self.state(name, block) for name, block in names)
        return embedding, head, tied

    @cached_property
    def encoder_layer_state(self) -> StateRows:
        """State of one layer of the encoder beside the decoder."""
        groups = parameter_groups(self.architecture).encoder
        return self.state("encoder layers", holdings(groups, self.recipe, linears=True))

    def state(self, name: str, block: tuple[Holding, ...]) -> StateRows:
        """State of one copy of a block on one rank."""
        return state_rows(name, block, self.architecture, self.recipe, self.layout, self.padded_vocab)


class StageView(NamedTuple):
    """What one stage holds, per kind of layer: layers, and layers × micro-batches in flight."""

    number: Int
    layers: tuple[Int, ...]
    held: tuple[Int, ...]
    first: Bool
    last: Bool


def view(prepared: Prepared, stage: Int) -> StageView:
    """Count the layers of one stage and the micro-batches in flight over them."""
    layout, run, architecture = prepared.layout, prepared.run, prepared.architecture
    layers: list[Int] = []
    held: list[Int] = []
    chunks = range(pipeline.most_chunks(layout))
    in_flight = [pipeline.in_flight(layout, run, stage, chunk) for chunk in chunks]
    for kind in prepared.kinds:
        here = [pipeline.layers_of(architecture, layout, kind, stage, chunk) for chunk in chunks]
        layers.append(sum(here))
        held.append(sum(count * copies for count, copies in zip(here, in_flight, strict=True)))
    if layout.vocabulary_over_pipeline:
        return StageView(stage, tuple(layers), tuple(held), stage >= 0, stage >= 0)
    return StageView(stage, tuple(layers), tuple(held), stage == 0, stage == layout.pp - 1)


def saved_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Tensors saved for backward by the layers of a stage, in all micro-batches in flight, as far as the GPU has
    them."""
    for bundle in all_saved_bundles(prepared, stage):
        yield bundle._replace(rows=offload.on_device(bundle.rows, prepared.on_host))


def all_saved_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Tensors saved for backward by the layers of a stage, wherever they are kept."""
    recompute = prepared.run.recompute
    for index, kind in enumerate(prepared.kinds):
        held, layers = stage.held[index], stage.layers[index]
        full = full_layers(prepared, layers)
        if recompute.kind == "full":
            inputs = (layer.boundary(prepared.scope),)
            copies = _scaled(held, full, layers)
            yield Bundle("activations", f"inputs of {kind.name} layers", inputs, _backward(copies, full), kind.name)
            held, layers = held - copies, layers - full
        if recompute.kind != "full" or recompute.full_layers is not None:
            rows = prepared.kept_rows[index]
            yield Bundle("activations", f"{kind.name} layers", rows, _backward(held, layers), kind.name)


def full_layers(prepared: Prepared, layers: Int) -> Int:
    """How many of `layers` on a stage are recomputed in full: all, or their share of `full_layers`."""
    recompute = prepared.run.recompute
    if recompute.kind != "full":
        return 0
    if recompute.full_layers is None:
        return layers
    return minimum(ceil_div(recompute.full_layers * layers, prepared.architecture.layers), layers)


def _scaled(held: Int, part: Int, whole: Int) -> Int:
    return where(whole > 0, held * part // maximum(whole, 1), 0)


def _backward(held: Int, once: Int) -> tuple[Int, ...]:
    """Copies of one layer's rows over the step: all in forward, one micro-batch's share gone when backward ends."""
    rest = held - once
    last = rest + where(once > 0, 1, 0)
    return (held, held, held, held, last, rest, 0)


def outside_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Saved tensors of the embedding (first stage) and of final norm, head and loss (last stage)."""
    held = pipeline.in_flight(prepared.layout, prepared.run, stage.number, 0)
    first, last = where(stage.first, 1, 0), where(stage.last, 1, 0)
    embedding = tuple(head.embedding(prepared.scope))
    copies: Int = held * first
    yield Bundle("activations", "embedding", embedding, (*[copies] * 6, 0))
    tail = tuple(head.head(prepared.scope))
    norm = tuple(row for row in tail if row.module != "loss")
    loss = tuple(row for row in tail if row.module == "loss")
    heads = last * (1 + prepared.architecture.mtp_layers)
    in_flight = _head_micro_batches(prepared)
    yield Bundle("activations", "final norm", norm, (*[heads * in_flight] * 3, 0, 0, 0, 0))
    yield Bundle("activations", "head and loss", loss, (*[heads * in_flight] * 3, 0, 0, 0, 0))
    if prepared.architecture.mtp_layers:
        rows = (*head.mtp_input(prepared.scope), *prepared.kept_rows[-1])
        modules: Int = last * prepared.architecture.mtp_layers * in_flight
        yield Bundle("activations", "multi-token prediction", rows, (*[modules] * 4, 0, 0, 0))


def _head_micro_batches(prepared: Prepared) -> Int:
    """Micro-batches whose logits are alive on the last stage: one, unless every forward runs before any backward."""
    return prepared.run.micro_batches if prepared.run.pipeline_schedule == "gpipe" else 1


def state_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Weights, gradients, masters and moments of a stage, as far as the GPU has them."""
    for bundle in all_state_bundles(prepared, stage):
        rows = offload.on_device(bundle.rows, prepared.on_host)
        if rows:
            yield bundle._replace(rows=rows)


def all_state_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Weights, gradients, masters and moments of a stage, wherever they are kept.

    Gradients that do not persist appear as backward passes, unless those of an earlier micro-batch wait already.
    """
    first, last = where(stage.first, 1, 0), where(stage.last, 1, 0)
    embedding, head_state, tied = prepared.outside_state
    parts: list[tuple[str, StateRows, Int, str]] = [
        ("embedding", embedding, first, "backward_end"),
        ("head", head_state, last, "layer_backward_first"),
    ]
    for kind, state, count in zip(prepared.kinds, prepared.layer_state, stage.layers, strict=True):
        parts.append((f"{kind.name} layers", state, count, "layer_backward_last"))
    if prepared.blocks.tied:
        parts.append(("tied head", tied, where(stage.first, 0, last), "layer_backward_first"))
    waits: Int = 1 if prepared.stack.gradients_persist else where(prepared.run.micro_batches > 1, 1, 0)
    for name, state, copies, appears in parts:
        for term in ("weights", "master_weights", "optimizer_moments"):
            chosen = state.of(term)
            if chosen:
                yield Bundle(term, name, chosen, tuple(copies for _ in ALWAYS))
        gradients = state.of("gradients")
        if not gradients:
            continue
        if prepared.run.optimizer_impl == "in-backward":
            # each parameter is updated, and its gradient freed, as soon as backward has made it
            alive = during(appears if "layers" not in name else "layer_backward_first", appears)
            yield Bundle("gradients", name, gradients, repeated(minimum(copies, 1), alive))
        else:
            appearing = (maximum(waits, count) for count in from_moment(appears))
            yield Bundle("gradients", name, gradients, repeated(copies, appearing))


def heaviest_kind(prepared: Prepared, stage: StageView) -> list[Int]:
    """Per kind of layer: 1 for the one on this stage whose backward needs most room, 0 for the others."""
    sizes = [
        where(count > 0, total_bytes(rows), 0)
        for count, rows in zip(stage.layers, prepared.layer_rows, strict=True)
    ]  # fmt: skip
    best: Int = 0
    for size in sizes:
        best = maximum(best, size)
    chosen: list[Int] = []
    taken: Int = 0
    for size in sizes:
        chosen.append(where((size == best) & (best > 0), 1 - taken, 0))
        taken = taken + chosen[-1]
    return chosen


def recompute_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Tensors of one layer that backward builds again from its input."""
    chosen = heaviest_kind(prepared, stage)
    for kind, rows, copies in zip(prepared.kinds, prepared.layer_rows, chosen, strict=True):
        # saved tensors that were sent to the host come back for their layer
        again = rows if "activations" in prepared.run.offload else _again(prepared, rows)
        if again:
            working = tuple(row._replace(term="working") for row in again)
            alive = repeated(copies, IN_LAYER_BACKWARD)
            yield Bundle("working", "recomputed layer", working, alive, kind.name)


def _again(prepared: Prepared, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    if prepared.kernels.op_policy:
        return tuple(row for row in rows if row.name not in torchtitan.KEPT_NAMES)
    return layer.recomputed(rows, prepared.run.recompute)


def saved_bytes(bundles: Iterable[Bundle]) -> Int:
    """Bytes saved for backward when the stage holds most: at the loss."""
    instant = INSTANTS.index("loss")
    total: Int = 0
    for bundle in bundles:
        if bundle.term == "activations":
            total = total + bundle.bytes * bundle.alive[instant]
    return total
