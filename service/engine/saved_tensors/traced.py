"""The ledger of stacks that run Hugging Face's modelling code, from the inventory of its program.

Of every segment there is a baseline (what its layers keep, times how many layers and micro-batches keep it) and, at
each instant of the step, one layer in progress at its fullest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from service.engine import pipeline
from service.engine.architecture import LayerKind
from service.engine.autograd.storage import Monomial
from service.engine.elementwise import Bool, Int, maximum, where
from service.engine.ledger import INSTANTS, Bundle, Dim, Row, TermName
from service.engine.saved_tensors.code.model import Facts
from service.engine.saved_tensors.inventory import Inventory, Moment, Segment, Template, inventory
from service.engine.saved_tensors.scope import Scope
from service.engine.saved_tensors.symbols import dimensions
from service.engine.stage import Prepared, StageView, state_bundles

OUTSIDE = "outside the layers"
FORWARD_END, LOSS, FIRST_BACKWARD, LAYER_FIRST, LAYER_LAST, BACKWARD_END, STEP = range(len(INSTANTS))


class Sizes:
    """Real sizes for the symbols of one segment; products are remembered."""

    def __init__(self, dims: dict[str, Dim]) -> None:
        self.dims = dims
        self._known: dict[Monomial, Int] = {(): 1}

    def product(self, key: Monomial) -> Int:
        """The size of a product of symbols."""
        found = self._known.get(key)
        if found is None:
            found = 1
            for symbol in key:
                found = found * (int(symbol) if symbol.isdigit() else self.dims[symbol].size)
            self._known[key] = found
        return found

    def row(self, template: Template, term: TermName) -> Row:
        """One row with its sizes put in."""
        dims = [self._dim(extent) for extent in template.shape if extent]
        if template.number > 1:
            dims.append(Dim(str(template.number), template.number))
        size = self.product(template.key) * (template.itemsize * template.number)
        return Row(
            term, template.name, template.module, tuple(dims), template.dtype, size, template.why, template.source,
            template.dropped_by,
        )  # fmt: skip

    def _dim(self, extent: tuple[str, ...]) -> Dim:
        if len(extent) == 1 and not extent[0].isdigit():
            return self.dims[extent[0]]
        sharded: dict[str, None] = {}
        for symbol in extent:
            if not symbol.isdigit():
                sharded.update(dict.fromkeys(self.dims[symbol].sharded_by))
        return Dim("·".join(extent), self.product(extent), tuple(sharded))

    def total(self, moment: Moment) -> Int:
        """Bytes of everything alive at a moment."""
        size: Int = 0
        for key, coefficient in moment.total:
            size = size + self.product(key) * coefficient
        return size

    def bytes(self, templates: Iterable[Template]) -> Int:
        size: Int = 0
        for template in templates:
            size = size + self.product(template.key) * (template.itemsize * template.number)
        return size


def facts_of(prepared: Prepared, *, one_sequence: bool) -> Facts:
    """What of this run decides which tensors exist."""
    a, run, recipe = prepared.architecture, prepared.run, prepared.recipe
    ones = set()
    if one_sequence:
        ones.add("b")
    if a.kv_heads == 1:
        ones.add("kv")
    if a.heads == a.kv_heads:
        ones.add("g")
    stored = recipe.compute if recipe.frozen_base and not recipe.casts else recipe.weights
    return Facts(
        stack=prepared.stack.name,
        compute=recipe.compute,
        weights=stored if not (recipe.casts and prepared.layout.shard == "parameters") else recipe.compute,
        autocast=recipe.casts and prepared.layout.shard != "parameters" and recipe.compute != "fp32",
        attention=run.attention,
        checkpoint=run.recompute.kind == "full",
        ones=frozenset(ones),
        window_reached=a.sliding_window is not None and run.sequence_length >= a.sliding_window,
        gradients=_gradients(prepared),
        kernels=run.kernels,
        loss=run.loss,
        logits_dtype=run.logits_dtype,
        residual=run.residual_dtype or "",
        frozen=recipe.frozen_base,
        adapters=tuple(recipe.lora_targets),
        adapter_dtype=recipe.adapter_dtype,
        adapter_dropout=run.lora_dropout > 0,
        wide_heads=a.head_dim > 256,
    )


def _gradients(prepared: Prepared) -> str:
    """Whether weight gradients stay as backward makes them, join ones that wait, or are the sharding's business."""
    if prepared.layout.shard == "parameters":
        return "unseen"
    waiting = prepared.stack.gradients_persist or bool(np.max(prepared.run.micro_batches) > 1)
    return "added" if waiting else "kept"


def bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Saved tensors, weight copies, recomputed layers, logits and gradients in flight of one stage."""
    kept = _gradients(prepared) == "kept"
    yield from (bundle for bundle in state_bundles(prepared, stage) if not (kept and bundle.term == "gradients"))
    for ledger, share in _variants(prepared, stage):
        for bundle in ledger.bundles():
            yield bundle._replace(alive=tuple(copies * share for copies in bundle.alive))


def saved_bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """What a stage saves for backward when it holds the most micro-batches in flight."""
    for ledger, share in _variants(prepared, stage):
        for bundle in ledger.saved():
            yield bundle._replace(alive=tuple(copies * share for copies in bundle.alive))


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
    """A layer that may be in progress at an instant: its segment, and the layers of every kind before and after it."""

    segment: int
    before: tuple[Int, ...]
    after: tuple[Int, ...]
    possible: Bool


class _Ledger:
    """The bundles of one stage for one variant of the program."""

    def __init__(self, prepared: Prepared, stage: StageView, *, one_sequence: bool) -> None:
        self.prepared = prepared
        self.stage = stage
        self.found: Inventory = inventory(prepared.architecture, facts_of(prepared, one_sequence=one_sequence))
        self.kinds = prepared.kinds
        scope: Scope = prepared.scope
        by_kind = [Sizes(dimensions(scope, kind)) for kind in self.kinds]
        self.sizes = [by_kind[0], *by_kind, by_kind[-1]]
        self.first = where(stage.first, 1, 0)
        self.last = where(stage.last, 1, 0)
        in_flight = pipeline.in_flight(prepared.layout, prepared.run, stage.number, 0)
        self.front_copies: Int = in_flight
        self.extra = tuple(held - layers for held, layers in zip(stage.held, stage.layers, strict=True))

    def bundles(self) -> Iterator[Bundle]:
        front, *layers, tail = self.found.segments
        candidates = {
            FORWARD_END: self._fullest(self._candidates(last=True), "forward"),
            LAYER_FIRST: self._fullest(self._candidates(last=True), "backward"),
            LAYER_LAST: self._fullest(self._candidates(last=False), "backward"),
        }
        yield from self._baseline(front, layers, tail, candidates)
        for instant, chosen in candidates.items():
            phase = "forward" if instant == FORWARD_END else "backward"
            for candidate, share in chosen:
                yield from self._in_progress(instant, candidate.segment, phase, share)
        end = len(self.found.segments) - 1
        yield from self._in_progress(LOSS, end, "forward", self.last)
        yield from self._in_progress(FIRST_BACKWARD, end, "backward", self.last)
        yield from self._in_progress(BACKWARD_END, 0, "backward", self.first)

        yield from self._inputs()
        if self._fresh_gradients:
            yield from self._gradients_made(candidates)

    def saved(self) -> Iterator[Bundle]:
        """Rows of `activations` only, alive from forward to the loss."""
        segments = self.found.segments
        copies = (self.front_copies, *self.stage.held, self.last)
        names = ("embedding and positions", *(f"{kind.name} layers" for kind in self.kinds), "final norm, head, loss")
        for segment, sizes, count, name in zip(segments, self.sizes, copies, names, strict=True):
            rows = tuple(sizes.row(template, "activations") for template in segment.saved)
            yield Bundle("activations", name, rows, (*[count] * 5, 0, 0), name if "layers" in name else OUTSIDE)

    def _inputs(self) -> Iterator[Bundle]:
        """Token ids and labels of the micro-batch, which the caller holds."""
        tokens = Dim("b·s", self.prepared.scope.tokens.size, ("cp",))
        row = Row(
            "working", "input ids and labels", "inputs", (tokens, Dim("2", 2)), "int64", tokens.size * 16,
            "the training loop holds the batch", "two int64 a token",
        )  # fmt: skip
        yield Bundle("working", "inputs", (row,), tuple(1 for _ in INSTANTS))

    def _gradients_made(self, chosen: dict[int, list[tuple[_Candidate, Int]]]) -> Iterator[Bundle]:
        """Weight gradients that stay once backward made them: those of the layers behind it."""
        embedding, head, tied = self.prepared.outside_state
        outside = ((embedding, self.first, 0), (head, self.last, 1))
        for state, copies, made in outside:
            rows = state.of("gradients")
            early = copies * made
            if rows:
                yield Bundle("gradients", "outside the layers", rows, (0, 0, 0, early, early, early, copies))
        if self.prepared.blocks.tied and tied.of("gradients"):
            copies = where(self.stage.first, 0, self.last)
            yield Bundle("gradients", "tied head", tied.of("gradients"), (0, 0, 0, *[copies] * 4))
        for index, kind in enumerate(self.kinds):
            rows = self.prepared.layer_state[index].of("gradients")
            if not rows:
                continue
            counts = []
            for instant in (LAYER_FIRST, LAYER_LAST):
                count: Int = 0
                for candidate, share in chosen[instant]:
                    count = count + share * candidate.after[index]
                counts.append(count)
            layers = self.stage.layers[index]
            yield Bundle("gradients", f"{kind.name} layers", rows, (0, 0, 0, *counts, layers, layers), kind.name)

    # which layer is in progress

    def _candidates(self, *, last: bool) -> list[_Candidate]:
        """For every kind, its last (or first) layer on this stage."""
        counts = self.stage.layers
        found = []
        for index, kind in enumerate(self.kinds):
            before, after = [], []
            for other_index, other in enumerate(self.kinds):
                place = kind.positions[-1 if last else 0]
                earlier = sum(1 for position in other.positions if position < place)
                later = len(other.positions) - earlier - (1 if other_index == index else 0)
                # on a stage of a pipeline the pattern of the whole model stands for its own
                share_before = counts[other_index] * earlier // max(len(other.positions), 1)
                share_after = counts[other_index] * later // max(len(other.positions), 1)
                if other_index == index:
                    rest = maximum(counts[other_index] - 1, 0)
                    share_before, share_after = (rest, 0) if last else (0, rest)
                before.append(share_before)
                after.append(share_after)
            found.append(_Candidate(1 + index, tuple(before), tuple(after), counts[index] > 0))
        return found

    def _fullest(self, candidates: Sequence[_Candidate], phase: str) -> list[tuple[_Candidate, Int]]:
        """The candidates with 1 for the one that makes the instant fullest, 0 for the others."""
        if len(candidates) == 1:
            return [(candidates[0], where(candidates[0].possible, 1, 0))]
        totals = [where(one.possible, self._total(one, phase), 0) for one in candidates]
        best: Int = 0
        for total in totals:
            best = maximum(best, total)
        chosen: list[tuple[_Candidate, Int]] = []
        taken: Int = 0
        for candidate, total in zip(candidates, totals, strict=True):
            share = where((total == best) & (best > 0), 1 - taken, 0)
            taken = taken + share
            chosen.append((candidate, share))
        return chosen

    def _total(self, candidate: _Candidate, phase: str) -> Int:
        segment = self.found.segments[candidate.segment]
        moments = segment.forward if phase == "forward" else segment.backward
        total = self._largest(moments, self.sizes[candidate.segment])
        for index, copies in enumerate(candidate.before):
            other = self.found.segments[1 + index]
            casts = other.casts_in_forward if phase == "forward" else other.casts_in_backward
            kept = (*other.saved, *casts)
            total = total + copies * self.sizes[1 + index].bytes(kept)
        if phase == "backward" and self._fresh_gradients:
            for index, copies in enumerate(candidate.after):
                total = total + copies * self._gradient_bytes(index)
        return total

    def _largest(self, moments: Sequence[Moment], sizes: Sizes) -> Int:
        largest: Int = 0
        for moment in moments:
            largest = maximum(largest, sizes.total(moment))
        return largest

    @property
    def _fresh_gradients(self) -> bool:
        return _gradients(self.prepared) == "kept"

    def _gradient_bytes(self, index: int) -> Int:
        total: Int = 0
        for row in self.prepared.layer_state[index].of("gradients"):
            total = total + row.bytes
        return total

    # what stays, and what passes

    def _baseline(
        self, front: Segment, layers: Sequence[Segment], tail: Segment,
        chosen: dict[int, list[tuple[_Candidate, Int]]],
    ) -> Iterator[Bundle]:  # fmt: skip
        yield from self._front(front)
        for index, (kind, segment) in enumerate(zip(self.kinds, layers, strict=True)):
            counts = self._counts(index, chosen)
            yield from self._layers(index, kind, segment, counts)
        casts = (0, 0, 0, 0, 0, 0, 0)
        rows = tuple(self.sizes[-1].row(template, "working") for template in tail.held)
        if rows:
            yield Bundle("working", "held by checkpointed calls", rows, casts)

    def _front(self, front: Segment) -> Iterator[Bundle]:
        """What the embedding keeps, positions and masks that all layers share."""
        copies = self.front_copies
        alive = (copies, copies, copies, copies, copies, 0 * copies, 0)
        sizes = self.sizes[0]
        saved = tuple(sizes.row(template, "activations") for template in front.saved)
        if saved:
            yield Bundle("activations", "embedding and positions", saved, alive)
        copies_of_weights = tuple(sizes.row(template, "working") for template in front.casts_in_forward)
        if copies_of_weights:
            yield Bundle("working", "weight copies", copies_of_weights, (*[self.first] * 5, 0, 0))

    def _counts(self, index: int, chosen: dict[int, list[tuple[_Candidate, Int]]]) -> tuple[Int, ...]:
        """Layers of one kind whose saved set is whole, at every instant, over all micro-batches in flight."""
        held, extra = self.stage.held[index], self.extra[index]

        def at(instant: int) -> Int:
            count: Int = 0
            for candidate, share in chosen[instant]:
                count = count + share * candidate.before[index]
            return extra + count

        return (at(FORWARD_END), held, held, at(LAYER_FIRST), at(LAYER_LAST), extra, 0)

    def _layers(self, index: int, kind: LayerKind, segment: Segment, counts: tuple[Int, ...]) -> Iterator[Bundle]:
        sizes = self.sizes[1 + index]
        rows = tuple(sizes.row(template, "activations") for template in segment.saved)
        name = f"inputs of {kind.name} layers" if self.prepared.run.recompute.kind == "full" else f"{kind.name} layers"
        yield Bundle("activations", name, rows, counts, kind.name)
        in_forward = tuple(sizes.row(template, "working") for template in segment.casts_in_forward)
        if in_forward:
            layers = self.stage.layers[index]
            yield Bundle("working", "16-bit weight copies", in_forward, (counts[0], layers, *[0] * 5), kind.name)
        in_backward = tuple(sizes.row(template, "working") for template in segment.casts_in_backward)
        if in_backward:
            layers = self.stage.layers[index]
            extra = self.extra[index]
            after = (0, 0, layers, counts[3] - extra, counts[4] - extra, 0, 0)
            yield Bundle("working", "16-bit weight copies", in_backward, after, kind.name)

    def _in_progress(self, instant: int, index: int, phase: str, share: Int) -> Iterator[Bundle]:
        """Everything alive in the layer (or front, or tail) in progress at its fullest, by term."""
        segment, sizes = self.found.segments[index], self.sizes[index]
        moments = segment.forward if phase == "forward" else segment.backward
        if not moments:
            return
        totals = [sizes.total(moment) for moment in moments]
        place = self.kinds[index - 1].name if 0 < index < len(self.found.segments) - 1 else OUTSIDE
        if all(isinstance(total, int) for total in totals):
            moment = moments[totals.index(max(totals))]
            yield from self._moment(moment, instant, index, share, place)
            return
        largest: Int = 0
        for total in totals:
            largest = maximum(largest, total)
        taken: Int = 0
        for moment, total in zip(moments, totals, strict=True):
            part = where(total == largest, 1 - taken, 0)
            taken = taken + part
            yield from self._moment(moment, instant, index, share * part, place)

    def _moment(self, moment: Moment, instant: int, index: int, share: Int, place: str) -> Iterator[Bundle]:
        rows: dict[TermName, list[Row]] = {}
        recomputing = self.prepared.run.recompute.kind == "full" and 0 < index < len(self.found.segments) - 1
        for template in moment.templates:
            term: TermName = "working"
            if template.saved and template.kind == "activation":
                term = "activations"
            elif (template.kind == "gradient" and not recomputing) or template.kind == "gradient":
                term = "gradients"
            rows.setdefault(term, []).append(self.sizes[index].row(template, term))
        for term, made in rows.items():
            name = "in progress" if term != "working" else "layer in progress"
            alive = tuple(share if at == instant else 0 for at in range(len(INSTANTS)))
            yield Bundle(term, name, tuple(made), alive, place)
