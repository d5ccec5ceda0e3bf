"""The ledger of stacks that run Hugging Face's modelling code, from the inventory of its program.

Of every segment there is a baseline (what its layers keep, times how many layers and micro-batches keep it) and, at
each instant of the step, one layer in progress at its fullest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from service.engine import offload, pipeline
from service.engine.elementwise import Bool, Int, maximum, where
from service.engine.ledger import INSTANTS, OUTSIDE, Bundle, Dim, Row, total_bytes
from service.engine.saved_tensors.facts import facts_of, gradients_of, program_architecture
from service.engine.saved_tensors.inventory import Inventory, Moment, inventory
from service.engine.saved_tensors.sizes import Sizes, sizes_of_scope
from service.engine.saved_tensors.units import Unit, units_of
from service.engine.stage import Prepared, StageView, state_bundles

FORWARD_END, LOSS, FIRST_BACKWARD, LAYER_FIRST, LAYER_LAST, BACKWARD_END, STEP = range(len(INSTANTS))


def bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """State, saved tensors, weight copies, recomputed layers, logits and gradients in flight of one stage."""
    kept = gradients_of(prepared) == "kept"
    yield from (bundle for bundle in state_bundles(prepared, stage) if not (kept and bundle.term == "gradients"))
    for ledger, share in _variants(prepared, stage):
        for bundle in ledger.bundles():
            yield _on_device(_shared(bundle, share), prepared)


def saved_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """What a stage saves for backward when it holds the most micro-batches in flight, wherever it is kept."""
    for ledger, share in _variants(prepared, stage):
        for bundle in ledger.saved():
            yield _shared(bundle, share)


def _shared(bundle: Bundle, share: Int) -> Bundle:
    if isinstance(share, int) and share == 1:
        return bundle
    return bundle._replace(alive=tuple(copies * share for copies in bundle.alive))


def _on_device(bundle: Bundle, prepared: Prepared) -> Bundle:
    """What the GPU keeps of the layers' saved tensors when activations are offloaded."""
    stays = bundle.layer == OUTSIDE or bundle.name == "layer in progress"
    if bundle.term != "activations" or stays or "activations" not in prepared.on_host:
        return bundle
    return bundle._replace(rows=offload.on_device(bundle.rows, prepared.on_host))


def _variants(prepared: Prepared, stage: StageView) -> Iterator[tuple[_Ledger, Int]]:
    """One ledger, or two where some layouts of a search have one sequence and others more, with 1 where it holds."""
    micro_batch = prepared.run.micro_batch
    alone: Bool = micro_batch == 1
    if isinstance(alone, np.ndarray) and not (alone.all() or not alone.any()):
        yield _Ledger(prepared, stage, one_sequence=True), where(alone, 1, 0)
        yield _Ledger(prepared, stage, one_sequence=False), where(alone, 0, 1)
        return
    yield _Ledger(prepared, stage, one_sequence=bool(np.all(alone))), 1


class _Candidate(NamedTuple):
    """A layer that may be in progress at an instant: its unit, and the layers of every unit before and after it."""

    unit: int
    before: tuple[Int, ...]
    after: tuple[Int, ...]
    possible: Bool


#: for an instant: the candidates, each with 1 where it is the one in progress
_Chosen = list[tuple[_Candidate, Int]]


class _Ledger:
    """The bundles of one stage for one variant of the program."""

    def __init__(self, prepared: Prepared, stage: StageView, *, one_sequence: bool) -> None:
        self.prepared = prepared
        self.stage = stage
        facts = facts_of(prepared, one_sequence=one_sequence)
        self.found: Inventory = inventory(program_architecture(prepared), facts)
        self.units: tuple[Unit, ...] = units_of(prepared.architecture, facts.recomputed_layers)
        scope = prepared.scope
        by_unit = [
            sizes_of_scope(scope, prepared.kinds[unit.kind], encoder=unit.holds == "encoder layer")
            for unit in self.units
        ]
        self.sizes = [by_unit[0], *by_unit, by_unit[-1]]
        self.layers = [self._on_stage(unit, stage.layers) for unit in self.units]
        self.held = [self._on_stage(unit, stage.held) for unit in self.units]
        self.extra = [held - layers for held, layers in zip(self.held, self.layers, strict=True)]
        self.first = where(stage.first, 1, 0)
        self.last = where(stage.last, 1, 0) * (1 + prepared.architecture.mtp_layers)
        self.in_flight = pipeline.in_flight(prepared.layout, prepared.run, stage.number, 0)
        self.fresh_gradients = facts.gradients == "kept"

    def _on_stage(self, unit: Unit, counts: tuple[Int, ...]) -> Int:
        """Layers of a unit on this stage, or layers times micro-batches in flight."""
        if unit.holds != "layer":
            return len(unit.positions)
        whole = len(self.prepared.kinds[unit.kind].positions)
        share: Int = counts[unit.kind] * len(unit.positions) // whole
        return share

    def bundles(self) -> Iterator[Bundle]:
        chosen = {
            FORWARD_END: self._fullest(self._candidates(last=True), "forward"),
            LAYER_FIRST: self._fullest(self._candidates(last=True), "backward"),
            LAYER_LAST: self._fullest(self._candidates(last=False), "backward"),
        }
        yield from self._inputs()
        yield from self._front()
        for index in range(len(self.units)):
            yield from self._layers(index, self._counts(index, chosen))
        for instant, candidates in chosen.items():
            phase = "forward" if instant == FORWARD_END else "backward"
            for candidate, share in candidates:
                yield from self._in_progress(instant, 1 + candidate.unit, phase, share)
        end = len(self.units) + 1
        yield from self._in_progress(LOSS, end, "forward", self.last)
        yield from self._in_progress(FIRST_BACKWARD, end, "backward", self.last)
        yield from self._in_progress(BACKWARD_END, 0, "backward", self.first)
        if self.fresh_gradients:
            yield from self._gradients(chosen)

    def saved(self) -> Iterator[Bundle]:
        """Rows of `activations` only, alive from forward to the loss."""
        front, *layers, tail = self.found.segments
        yield self._saved("embedding and positions", self.sizes[0].rows(front.saved, "activations"), self.in_flight)
        for unit, segment, sizes, held in zip(self.units, layers, self.sizes[1:-1], self.held, strict=True):
            yield self._saved(f"{unit.name} layers", sizes.rows(segment.saved, "activations"), held, unit.name)
        loss = tuple(template for template in tail.saved if template.module == "loss")
        norm = tuple(template for template in tail.saved if template.module != "loss")
        yield self._saved("final norm", self.sizes[-1].rows(norm, "activations"), self.last)
        yield self._saved("head and loss", self.sizes[-1].rows(loss, "activations"), self.last)

    def _saved(self, name: str, rows: Sequence[Row], copies: Int, layer: str = OUTSIDE) -> Bundle:
        return Bundle("activations", name, rows, (*[copies] * 5, 0, 0), layer)

    # which layer is in progress

    def _candidates(self, *, last: bool) -> list[_Candidate]:
        """For every unit, its last (or first) layer on this stage; a stage has the pattern of the whole model."""
        found = []
        for index, unit in enumerate(self.units):
            place = unit.positions[-1 if last else 0]
            before: list[Int] = []
            after: list[Int] = []
            for other, count in zip(self.units, self.layers, strict=True):
                earlier = sum(1 for position in other.positions if position < place)
                later = sum(1 for position in other.positions if position > place)
                before.append(count * earlier // len(other.positions))
                after.append(count * later // len(other.positions))
            rest = maximum(self.layers[index] - 1, 0)
            before[index], after[index] = (rest, 0) if last else (0, rest)
            found.append(_Candidate(index, tuple(before), tuple(after), self.layers[index] > 0))
        return found

    def _fullest(self, candidates: Sequence[_Candidate], phase: str) -> _Chosen:
        """The candidates with 1 for the one that makes the instant fullest, 0 for the others."""
        if len(candidates) == 1:
            return [(candidates[0], where(candidates[0].possible, 1, 0))]
        totals = [where(one.possible, self._total(one, phase), 0) for one in candidates]
        best: Int = 0
        for total in totals:
            best = maximum(best, total)
        chosen: _Chosen = []
        taken: Int = 0
        for candidate, total in zip(candidates, totals, strict=True):
            share = where((total == best) & (best > 0), 1 - taken, 0)
            taken = taken + share
            chosen.append((candidate, share))
        return chosen

    def _total(self, candidate: _Candidate, phase: str) -> Int:
        """Bytes of a candidate and of everything that differs from candidate to candidate."""
        segment, sizes = self.found.segments[1 + candidate.unit], self.sizes[1 + candidate.unit]
        total: Int = 0
        for moment in segment.forward if phase == "forward" else segment.backward:
            total = maximum(total, sizes.total(moment))
        for index, copies in enumerate(candidate.before):
            other = self.found.segments[1 + index]
            casts = other.casts_in_forward if phase == "forward" else other.casts_in_backward
            total = total + copies * self.sizes[1 + index].bytes((*other.saved, *casts))
        if phase == "backward" and self.fresh_gradients:
            for index, copies in enumerate(candidate.after):
                total = total + copies * total_bytes(self._gradient_rows(index))
        return total

    # what stays

    def _inputs(self) -> Iterator[Bundle]:
        """Token ids and labels of the micro-batch, which the training loop holds."""
        tokens = Dim("b·s", self.prepared.scope.tokens.size, ("cp",))
        row = Row(
            "working", "input ids and labels", "inputs", (tokens, Dim("2", 2)), "int64", tokens.size * 16,
            "the training loop holds the batch", "two int64 a token",
        )  # fmt: skip
        yield Bundle("working", "inputs", (row,), tuple(1 for _ in INSTANTS))

    def _front(self) -> Iterator[Bundle]:
        """What the embedding keeps, and positions and masks that all layers share."""
        front, sizes, copies = self.found.segments[0], self.sizes[0], self.in_flight
        if front.saved:
            saved = sizes.rows(front.saved, "activations")
            yield Bundle("activations", "embedding and positions", saved, (*[copies] * 5, 0, 0))

    def _counts(self, index: int, chosen: dict[int, _Chosen]) -> tuple[Int, ...]:
        """Layers of one unit whose saved set is whole, at every instant, over all micro-batches in flight."""
        held, extra = self.held[index], self.extra[index]

        def at(instant: int) -> Int:
            count: Int = extra
            for candidate, share in chosen[instant]:
                count = count + share * candidate.before[index]
            return count

        return (at(FORWARD_END), held, held, at(LAYER_FIRST), at(LAYER_LAST), extra, 0)

    def _layers(self, index: int, counts: tuple[Int, ...]) -> Iterator[Bundle]:
        """What the layers of one unit keep: saved tensors, and 16-bit copies of their weights."""
        unit, sizes, segment = self.units[index], self.sizes[1 + index], self.found.segments[1 + index]
        name = f"inputs of {unit.name} layers" if unit.recomputed else f"{unit.name} layers"
        yield Bundle("activations", name, sizes.rows(segment.saved, "activations"), counts, unit.name)
        layers, extra = self.layers[index], self.extra[index]
        if segment.casts_in_forward:
            rows = sizes.rows(segment.casts_in_forward, "working")
            yield Bundle("working", "16-bit weight copies", rows, (counts[0] - extra, layers, *[0] * 5), unit.name)
        if segment.casts_in_backward:
            rows = sizes.rows(segment.casts_in_backward, "working")
            left = (counts[LAYER_FIRST] - extra, counts[LAYER_LAST] - extra)
            yield Bundle("working", "16-bit weight copies", rows, (0, 0, layers, *left, 0, 0), unit.name)

    def _gradient_rows(self, index: int) -> tuple[Row, ...]:
        unit = self.units[index]
        if unit.holds == "layer":
            return self.prepared.layer_state[unit.kind].of("gradients")
        if unit.holds == "encoder layer":
            return self.prepared.encoder_layer_state.of("gradients")
        return ()

    def _gradients(self, chosen: dict[int, _Chosen]) -> Iterator[Bundle]:
        """Weight gradients that stay once backward made them: those of the layers behind it."""
        embedding, head, tied = self.prepared.outside_state
        last = where(self.stage.last, 1, 0)
        made: list[tuple[str, tuple[Row, ...], tuple[Int, ...]]] = [
            ("embedding", embedding.of("gradients"), (0, 0, 0, 0, 0, 0, self.first)),
            ("head", head.of("gradients"), (0, 0, 0, *[last] * 4)),
        ]
        if self.prepared.blocks.tied:
            copy = where(self.stage.first, 0, last)
            made.append(("tied head", tied.of("gradients"), (0, 0, 0, *[copy] * 4)))
        for index, unit in enumerate(self.units):
            after: list[Int] = []
            for instant in (LAYER_FIRST, LAYER_LAST):
                count: Int = 0
                for candidate, share in chosen[instant]:
                    count = count + share * candidate.after[index]
                after.append(count)
            layers = self.layers[index]
            # an encoder's gradients are among the embedding's when the step begins
            at_step: Int = layers if unit.holds == "layer" else 0
            made.append((f"{unit.name} layers", self._gradient_rows(index), (0, 0, 0, *after, layers, at_step)))
        for name, rows, alive in made:
            if rows:
                yield Bundle("gradients", name, rows, alive)

    # what passes

    def _in_progress(self, instant: int, index: int, phase: str, share: Int) -> Iterator[Bundle]:
        """Everything alive in the layer (or front, or tail) in progress at its fullest, by term."""
        segment, sizes = self.found.segments[index], self.sizes[index]
        moments = segment.forward if phase == "forward" else segment.backward
        totals = [sizes.total(moment) for moment in moments]
        place = self.units[index - 1].name if 0 < index <= len(self.units) else OUTSIDE
        largest: Int = 0
        for total in totals:
            largest = maximum(largest, total)
        taken: Int = 0
        for moment, total in zip(moments, totals, strict=True):
            part = where(total == largest, 1 - taken, 0)
            taken = taken + part
            if isinstance(part, np.ndarray) or part:
                yield from self._moment(moment, instant, sizes, share * part, place)

    def _moment(self, moment: Moment, instant: int, sizes: Sizes, share: Int, place: str) -> Iterator[Bundle]:
        alive = tuple(share if at == instant else 0 for at in range(len(INSTANTS)))
        name = "in progress" if place == OUTSIDE else "layer in progress"
        for term, templates in moment.parts.items():
            yield Bundle(term, name, sizes.rows(templates, term), alive, place)
