"""Into which repeated parts a model's program is cut."""

from __future__ import annotations

from typing import Literal, NamedTuple

from service.engine.architecture import Architecture, layer_kinds

Holds = Literal["layer", "encoder layer", "between"]


class Unit(NamedTuple):
    """Layers that are alike, with their places in the order of forward.

    `kind` indexes `layer_kinds`; an encoder's layers and what lies between encoder and decoder have the first kind.
    """

    name: str
    kind: int
    positions: tuple[int, ...]
    holds: Holds = "layer"
    #: backward runs forward of these layers again
    recomputed: bool = False


def units_of(architecture: Architecture, recomputed_layers: int) -> tuple[Unit, ...]:
    """One unit a kind of layer; encoder-decoders have first, middle and last layers of two stacks.

    Of a model that recomputes some of its layers the first ones are recomputed: those are units of their own.

    The first layer of a T5 stack makes the position bias that the others share; gradients of what is shared wait
    while backward is in the middle ones.
    """
    if architecture.encoder is None:
        found = []
        for index, kind in enumerate(layer_kinds(architecture)):
            chosen = tuple(place for place in kind.positions if place < recomputed_layers)
            plain = kind.positions[len(chosen) :]
            found += [Unit(kind.name, index, chosen, recomputed=True)] if chosen else []
            found += [Unit(kind.name, index, plain)] if plain else []
        return tuple(sorted(found, key=lambda unit: unit.positions[0]))
    encoder = architecture.encoder.layers
    again = recomputed_layers > 0
    stack = [*_parts("encoder", "encoder layer", 0, encoder, again), Unit("encoder output", 0, (encoder,), "between")]
    return (*stack, *_parts("decoder", "layer", encoder + 1, architecture.layers, again))


def _parts(stack: str, holds: Holds, start: int, layers: int, recomputed: bool) -> list[Unit]:
    places = tuple(range(start, start + layers))
    cuts = (("first", places[:1]), ("middle", places[1:-1]), ("last", places[1:][-1:]))
    return [Unit(f"{name} {stack}", 0, chosen, holds, recomputed) for name, chosen in cuts if chosen]
