"""LoRA adapters: for each adapted linear of `in` × `out` a pair of matrices, r·in and r·out (arXiv:2106.09685)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from service.engine.architecture import Architecture, LayerKind
from service.engine.recipe import Recipe

ATTENTION_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP_TARGETS = ("gate_proj", "up_proj", "down_proj")
ALL_LINEAR = ATTENTION_TARGETS + MLP_TARGETS


class Adapter(NamedTuple):
    """The two matrices of one adapted linear, counted together; `copies` of it (experts) lie side by side."""

    target: str
    fan_in: int
    fan_out: int
    rank: int
    copies: int = 1
    shards: str = ""

    @property
    def elements(self) -> int:
        return self.copies * self.rank * (self.fan_in + self.fan_out)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rank, self.fan_in + self.fan_out)


def targets(recipe: Recipe) -> tuple[str, ...]:
    """The linear layers that get an adapter."""
    return recipe.lora_targets or ALL_LINEAR


def linears(architecture: Architecture, kind: LayerKind) -> Iterator[tuple[str, int, int, int]]:
    """(target, in, out, copies) of every adaptable linear of one layer, whatever the model calls it."""
    hidden, mla = architecture.hidden_size, architecture.mla
    if mla is not None:
        query_in = mla.q_lora_rank or hidden
        yield "q_proj", query_in, architecture.heads * mla.qk_head_dim, 1
        if mla.q_lora_rank:
            yield "q_proj", hidden, mla.q_lora_rank, 1
        yield "k_proj", hidden, mla.kv_lora_rank + mla.qk_rope_head_dim, 1
        yield "v_proj", mla.kv_lora_rank, architecture.heads * (mla.qk_nope_head_dim + mla.v_head_dim), 1
    else:
        yield "q_proj", hidden, architecture.query_width, 1
        yield "k_proj", hidden, architecture.kv_width, 1
        yield "v_proj", hidden, architecture.kv_width, 1
    yield "o_proj", architecture.value_width, hidden, 1
    for width, copies in _mlp_widths(architecture, kind):
        if architecture.gated:
            yield "gate_proj", hidden, width, copies
        yield "up_proj", hidden, width, copies
        yield "down_proj", width, hidden, copies


def _mlp_widths(architecture: Architecture, kind: LayerKind) -> Iterator[tuple[int, int]]:
    moe = architecture.moe
    if kind.mlp == "dense" or moe is None:
        yield kind.ffn_size or 0, 1
        return
    yield moe.ffn_size, moe.experts
    if moe.shared_width:
        yield moe.shared_width, 1


def of_layer(architecture: Architecture, kind: LayerKind, recipe: Recipe) -> Iterator[Adapter]:
    """Adapters of one layer; none under full fine-tuning."""
    if not recipe.frozen_base:
        return
    chosen = frozenset(targets(recipe))
    for target, fan_in, fan_out, copies in linears(architecture, kind):
        if target in chosen:
            yield Adapter(target, fan_in, fan_out, recipe.lora_rank, copies, "ep" if copies > 1 else "")


def of_head(architecture: Architecture, recipe: Recipe) -> Iterator[Adapter]:
    """The adapter of the head, when it is asked for by name."""
    if recipe.frozen_base and "lm_head" in targets(recipe) and architecture.head == "lm":
        yield Adapter("lm_head", architecture.hidden_size, architecture.vocab_size, recipe.lora_rank)
