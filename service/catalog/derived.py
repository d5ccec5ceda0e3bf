"""A shape for a number of parameters that no model has, from the dense models just below and above it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from service.catalog.facts import Catalog
from service.catalog.hf_config import read
from service.engine.architecture import Architecture, ExtraTensor
from service.engine.parameters import count

#: families whose shapes are plain enough to stand between
_LADDER_CODES = frozenset({"llama", "mistral", "qwen2", "qwen3"})
_LARGE_HEAD_DIM, _SMALL_HEAD_DIM, _SMALL_HIDDEN = 128, 64, 1024
#: widths are multiples of this, so that tensor parallelism up to 8 divides heads and MLP
_FFN_STEP = 256
_LARGEST_EMBEDDING_SHARE = 1 / 3


def derived_shape(catalog: Catalog, parameters: int) -> tuple[Architecture, tuple[str, ...]]:
    """A dense Llama-like architecture of about so many parameters, and the ids of its neighbours.

    Depth, width and MLP ratio are interpolated on a logarithmic scale between the neighbours (extended beyond the
    smallest and the largest with width as the cube root of the size), then the MLP width is set so that the count comes
    as close as its step allows.
    """
    below, above = _neighbours(catalog, parameters)
    names = tuple(dict.fromkeys((below[0], above[0])))
    hidden = _rounded_hidden(_between(below, above, parameters, lambda arch: arch.hidden_size, exponent=1 / 3))
    dim = _LARGE_HEAD_DIM if hidden >= _SMALL_HIDDEN else _SMALL_HEAD_DIM
    heads = hidden // dim
    ratio = _between(below, above, parameters, lambda arch: (arch.ffn_size or 1) / arch.hidden_size, exponent=0)
    near = below[1] if parameters / _size(below) < _size(above) / parameters else above[1]
    vocab = min(near.vocab_size, int(parameters * _LARGEST_EMBEDDING_SHARE / hidden) // 64 * 64)
    shape = Architecture(
        layers=1,
        hidden_size=hidden,
        heads=heads,
        kv_heads=math.gcd(heads, 8),
        head_dim=dim,
        ffn_size=_FFN_STEP,
        vocab_size=max(vocab, 64),
        max_positions=near.max_positions,
        tied_embeddings=near.tied_embeddings,
        code="llama",
    )
    return _exactly(_filled(shape, parameters, ratio), parameters), names


def _exactly(shape: Architecture, parameters: int) -> Architecture:
    """The same shape counting exactly `parameters`: the MLPs, its largest group, absorb the difference.

    The difference (either sign, below one step of the MLP width) is spread over the layers like their matrices.
    """
    per_layer, rest = divmod(parameters - count(shape), shape.layers)
    spread = ExtraTensor(
        name="mlp.rounding", module="mlp", shape=(per_layer,), layers=tuple(range(shape.layers)), shards="tp"
    )
    return replace(shape, extra_tensors=(spread,), extra_parameters=(("rounding", rest),))


def _filled(shape: Architecture, parameters: int, ratio: float) -> Architecture:
    """Depth from the ratio of MLP to width, then the MLP width that comes closest."""
    step = _FFN_STEP if shape.hidden_size >= _SMALL_HIDDEN else 16
    usual = _with(shape, 1, max(round(ratio * shape.hidden_size / step) * step, step))
    layer = count(_with(usual, 2, usual.ffn_size or step)) - count(usual)
    rest = count(usual) - layer
    layers = _rounded_layers(max((parameters - rest) / layer, 1))
    one = count(_with(shape, layers, step))
    per_step = count(_with(shape, layers, 2 * step)) - one
    return _with(shape, layers, step * max(1 + round((parameters - one) / per_step), 1))


def _with(shape: Architecture, layers: int, ffn_size: int) -> Architecture:
    return replace(shape, layers=layers, ffn_size=ffn_size)


def _rounded_hidden(width: float) -> int:
    step = 1024 if width >= 2048 else 256 if width >= _SMALL_HIDDEN else 64
    return max(round(width / step) * step, 64)


def _rounded_layers(layers: float) -> int:
    step = 4 if layers >= 20 else 2
    return max(round(layers / step) * step, 2)


def _between(
    below: tuple[str, Architecture],
    above: tuple[str, Architecture],
    parameters: int,
    of: Callable[[Architecture], float],
    exponent: float,
) -> float:
    low, high = _size(below), _size(above)
    if below[0] == above[0]:
        return of(below[1]) * math.pow(parameters / low, exponent)
    share = math.log(parameters / low) / math.log(high / low)
    return of(below[1]) * math.pow(of(above[1]) / of(below[1]), share)


def _size(entry: tuple[str, Architecture]) -> int:
    return count(entry[1])


def _neighbours(catalog: Catalog, parameters: int) -> tuple[tuple[str, Architecture], tuple[str, Architecture]]:
    ladder = _ladder(catalog)
    smaller = [entry for entry in ladder if _size(entry) <= parameters]
    larger = [entry for entry in ladder if _size(entry) > parameters]
    return (smaller or larger[:1])[-1], (larger or smaller[-1:])[0]


@lru_cache(maxsize=4)
def _ladder(catalog: Catalog) -> tuple[tuple[str, Architecture], ...]:
    """Dense models with plain shapes, by size."""
    dense = [
        (fact.id, read(fact.config).architecture)
        for fact in catalog.models.values()
        if fact.supported and fact.kind == "decoder-lm" and fact.model_type in _LADDER_CODES
    ]
    return tuple(sorted(dense, key=_size))
