"""Weights, gradients, master weights and optimizer moments of one pipeline stage, as rows.

Parameters are grouped into blocks that live together (the embedding, one layer of a kind, the head). Within a block,
a holding is what is split and stored alike; a few integers per holding are all that a layout needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from service.engine import adapters
from service.engine.architecture import Architecture, layer_kinds
from service.engine.elementwise import Int, ceil_div
from service.engine.layout import Layout
from service.engine.ledger import Dim, Row, TermName
from service.engine.parameters import ParameterGroup, parameter_groups
from service.engine.recipe import BASE_WEIGHT_BYTES, WHY, Recipe, moment_bytes

TABLE = "state per parameter: recipe × optimizer × method × stack"


class Holding(NamedTuple):
    """Parameters of one block that are split alike. Counts are of the whole (unsharded) block.

    `weight_bytes` is all that is stored, frozen or not; `trainable` what the optimizer updates; `moment_bytes` its
    state. `vocabulary` > 0 marks a table of so many rows, which ranks hold padded.
    """

    shards: str
    elements: int
    weight_bytes: int
    trainable: int
    moment_bytes: int
    vocabulary: int = 0

    @property
    def expert(self) -> bool:
        return self.shards == "ep"


class Blocks(NamedTuple):
    """All parameters of a model: outside the layers by name, and one layer of each kind."""

    embedding: tuple[Holding, ...]
    layers: tuple[tuple[Holding, ...], ...]
    head: tuple[Holding, ...]
    tied: bool
    #: the vocabulary table once more, for the last pipeline stage of a tied model
    tied_copy: tuple[Holding, ...]


def holdings(groups: Iterable[ParameterGroup], recipe: Recipe, *, linears: bool) -> tuple[Holding, ...]:
    """Group parameters by how they are split. `linears` says that these are layers, whose linear weights a
    quantised base stores in 4 bits (embeddings, norms and head stay in 16, QLoRA section 3)."""
    found: dict[tuple[str, int], list[int]] = {}
    for group in groups:
        vocabulary = group.shape[0] if group.shards == "tp" and group.module in ("embedding", "head") else 0
        sums = found.setdefault((group.shards, vocabulary), [0, 0, 0, 0])
        matrix = group.kind in ("matrix", "expert")
        sums[0] += group.count
        if recipe.frozen_base:
            stored = BASE_WEIGHT_BYTES[recipe.base_weights if matrix and linears else recipe.compute]
            sums[1] += -(-group.count * stored.numerator // stored.denominator)
        else:
            sums[1] += group.count * recipe.weight_bytes
            sums[2] += group.count
            sums[3] += moment_bytes(recipe, group.count, group.shape, group.copies, matrix=matrix and linears)
    return tuple(
        Holding(shards, sums[0], sums[1], sums[2], sums[3], vocabulary) for (shards, vocabulary), sums in found.items()
    )


@lru_cache(maxsize=1024)
def blocks(architecture: Architecture, recipe: Recipe) -> Blocks:
    """The model's parameters as blocks of holdings, adapters included; `layers` in the order of `layer_kinds`."""
    model = parameter_groups(architecture)
    layers = tuple(
        holdings(model.layers[kind], recipe, linears=True)
        + _adapters(adapters.of_layer(architecture, kind, recipe), recipe)
        for kind in layer_kinds(architecture)
    )
    encoder = tuple(replace(group, copies=group.copies * model.encoder_layers) for group in model.encoder)
    mtp = tuple(replace(group, copies=group.copies * model.mtp_layers) for group in model.mtp)
    outside = (*model.embedding, *model.encoder_embedding, *model.encoder_final, *model.extra)
    head = holdings((*model.final, *model.head), recipe, linears=False) + holdings(mtp, recipe, linears=True)
    table = [group for group in model.embedding if group.kind == "embedding" and group.shards == "tp"]
    return Blocks(
        embedding=holdings(outside, recipe, linears=False) + holdings(encoder, recipe, linears=True),
        layers=layers,
        head=head + _adapters(adapters.of_head(architecture, recipe), recipe),
        tied=architecture.tied_embeddings and architecture.head in ("lm", "masked-lm"),
        tied_copy=holdings(table[:1], recipe, linears=False),
    )


def _adapters(counts: Iterable[adapters.Adapter], recipe: Recipe) -> tuple[Holding, ...]:
    return tuple(
        Holding(
            shards=adapter.shards,
            elements=adapter.elements,
            weight_bytes=adapter.elements * recipe.weight_bytes,
            trainable=adapter.elements,
            moment_bytes=moment_bytes(recipe, adapter.elements, adapter.shape, adapter.copies, matrix=True),
        )
        for adapter in counts
    )


def split(count: int, holding: Holding, layout: Layout, architecture: Architecture, padded: Int) -> Int:
    """`count` (elements or bytes of the whole holding) on one model-parallel rank."""
    if holding.vocabulary:
        # row by row, so that bytes × rows stay within 64 bits; the sum is count · padded / vocabulary, rounded down
        each, rest = divmod(count, holding.vocabulary)
        return (each * padded + rest * padded // holding.vocabulary) // layout.vocabulary_ranks
    kv_heads = architecture.kv_heads
    if holding.shards == "tp_qkv":  # ranks beyond the key-value heads hold copies of them, as without the fusion
        shared = count * 2 * kv_heads // (architecture.heads + 2 * kv_heads)
        return ceil_div(count - shared, layout.tp) + ceil_div(shared, layout.divisor("tp_kv", kv_heads))
    return ceil_div(count, layout.divisor(holding.shards, kv_heads))


class StateRows(NamedTuple):
    """The four state terms of one block, one row per term and class of sharding."""

    rows: tuple[Row, ...]

    def of(self, term: TermName) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.term == term)


def state_rows(
    name: str, block: tuple[Holding, ...], architecture: Architecture, recipe: Recipe, layout: Layout, padded: Int
) -> StateRows:
    """Rows of one copy of a block on one rank, after every degree and the data-parallel sharding divided it."""
    rows: list[Row] = []
    for holding in block:
        what = f"{name}, experts" if holding.expert else name
        amounts: tuple[tuple[TermName, int, int, str], ...] = (
            ("weights", holding.weight_bytes, holding.elements, "parameters"),
            ("gradients", holding.trainable * recipe.gradient_bytes, holding.trainable, "gradients"),
            ("master_weights", holding.trainable * recipe.master_bytes, holding.trainable, "optimizer"),
            ("optimizer_moments", holding.moment_bytes, holding.trainable, "optimizer"),
        )
        degrees = ("ep", "etp") if holding.expert else ("tp",) if holding.shards else ()
        for term, whole, elements, level in amounts:
            if whole == 0:
                continue
            shape: tuple[Dim, ...] = ()
            ranks = layout.shard_ranks(level, expert=holding.expert)  # type: ignore[arg-type]
            local = ceil_div(split(whole, holding, layout, architecture, padded), ranks)
            if isinstance(local, int):  # nobody reads the shapes of thousands of layouts
                count = ceil_div(split(elements, holding, layout, architecture, padded), ranks)
                shape = (Dim("P", count, (*degrees, "dp·cp") if SHARDED[level, layout.shard] else degrees),)
            rows.append(Row(term, what, name, shape, _dtype(term, recipe), local, WHY[term], TABLE))
    return StateRows(tuple(rows))


#: whether a state that is sharded from `level` on is divided under a `shard` setting
_ORDER = ("none", "optimizer", "gradients", "parameters")
SHARDED = {(level, shard): _ORDER.index(shard) >= _ORDER.index(level) for level in _ORDER for shard in _ORDER}


def _dtype(term: TermName, recipe: Recipe) -> str:
    return {
        "weights": recipe.weights,
        "gradients": recipe.gradients[-1],
        "master_weights": recipe.master or recipe.weights,
        "optimizer_moments": recipe.moments,
    }[term]


def unsharded_elements(
    block: tuple[Holding, ...], architecture: Architecture, layout: Layout, padded: Int
) -> Int:  # fmt: skip
    """Elements of a block on one model-parallel rank before data-parallel sharding: what a gather brings together."""
    total: Int = 0
    for holding in block:
        total = total + split(holding.elements, holding, layout, architecture, padded)
    return total


def unsharded_weight_bytes(
    block: tuple[Holding, ...], architecture: Architecture, layout: Layout, padded: Int
) -> Int:  # fmt: skip
    """Stored bytes of a block on one model-parallel rank before data-parallel sharding, quantised ones as they are."""
    total: Int = 0
    for holding in block:
        total = total + split(holding.weight_bytes, holding, layout, architecture, padded)
    return total
