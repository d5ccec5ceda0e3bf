"""What decoders share around their layers: embedding, positions, masks, head and loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import losses, parts
from service.engine.saved_tensors.code.model import Around, Model


class Layer(Protocol):
    """One decoder layer of a family."""

    def __call__(self, m: Model, x: Tensor, *, at: Around) -> Tensor: ...


Rotary = Callable[[Model], tuple[Tensor | None, Tensor | None]]


def embed(m: Model, width: str = "h") -> Tensor:
    """Token embeddings."""
    t = m.tape
    with t.part("embedding"):
        table = m.vector("embedding table", t.extent("V"), t.extent(width))
        return ops.embedding(table, t.shape("b s"), "embedded tokens")


def rotary(m: Model) -> tuple[Tensor | None, Tensor | None]:
    """cos and sin where the model has rotary positions."""
    if m.architecture.position != "rope":
        return None, None
    return parts.positions(m)


def decoder(
    m: Model, layer: Layer, *, positions: Rotary = rotary, scaled: bool = False, dropout: float = 0.0,
    mask: Callable[[Model], Tensor | None] | None = None,
    returns_probabilities: bool = False,
) -> Tensor:  # fmt: skip
    """Forward of a decoder: embedded tokens (`scaled` by a constant), masks, positions, layers, final norm."""
    t = m.tape
    embedded = embed(m)
    ids = t.new(t.shape("s"), "int64", "position ids")
    if mask is not None:
        masks: dict[str, Tensor | None] = dict.fromkeys(("full", "sliding"), mask(m))
    else:
        masks = {kind.attention: parts.causal_mask(m, sliding=kind.attention == "sliding") for kind in m.kinds}
    x = ops.scale(embedded, "scaled embedding") if scaled else embedded
    x = ops.dropout(x, dropout, "embedding dropout")
    if m.facts.residual:
        x = ops.to(x, m.facts.residual, "embedded tokens in the stream's dtype")
    if m.facts.frozen:
        # peft's enable_input_require_grads; without it only the first layer would differ
        x = t.leaf(x, "embedded tokens")
    cos, sin = positions(m)
    around = {name: Around(made, cos, sin, (ids,)) for name, made in masks.items()}
    x = through_layers(m, layer, x, around, returns_probabilities=returns_probabilities)
    return parts.norm(m, x, "final norm") if m.architecture.final_norm else x


def through_layers(
    m: Model, layer: Layer, x: Tensor, around: dict[str, Around], *, returns_probabilities: bool = False
) -> Tensor:
    """One layer of every unit, each in a segment of its own.

    Some families' layers also return their attention probabilities, which the loop then holds until the next layer
    returns its own: under recomputation nothing else keeps them.
    """
    t, held = m.tape, None
    for index in range(len(m.units)):
        x = m.enter_layer(index, x)
        if returns_probabilities and m.recomputed and m.facts.attention == "eager" and m.architecture.layers > 1:
            held = t.new(t.shape("b kv*g s s"), m.facts.compute, "attention probabilities of the layer before")
        at = around[m.kind.attention]
        x = m.checkpointed(partial(layer, m, at=at), x, at)
    del held
    return m.leave_layers(x)


head = losses.head


def causal_lm(m: Model, layer: Layer, *, scaled: bool = False) -> Tensor:
    """A decoder with head and loss."""
    return losses.loss(m, decoder(m, layer, scaled=scaled))
