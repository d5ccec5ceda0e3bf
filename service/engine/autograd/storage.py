"""Storages and the tensors that look at them.

Extents are products of symbols ("b", "s", "h" …). Every symbol stands for its own prime while a program runs, so two
extents are equal exactly when their symbols are; real sizes are put in afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.engine.autograd.graph import Node
    from service.engine.autograd.tape import Tape

Extent = tuple[str, ...]
Shape = tuple[Extent, ...]
#: sorted symbols of a whole storage
Monomial = tuple[str, ...]

ITEMSIZE = {
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "complex64": 8,
    "int64": 8,
    "int32": 4,
    "bool": 1,
    "uint64": 8,
    "uint8": 1,
}

_PRIMES: dict[str, int] = {}


def _next_prime(above: int) -> int:
    number = above + 2
    while any(number % divisor == 0 for divisor in range(3, int(number**0.5) + 1, 2)):
        number += 2
    return number


def prime_of(symbol: str) -> int:
    """The prime that stands for a symbol; plain numbers stand for themselves."""
    if symbol.isdigit():
        return int(symbol)
    if symbol not in _PRIMES:
        _PRIMES[symbol] = _next_prime(max(_PRIMES.values(), default=101))
    return _PRIMES[symbol]


@lru_cache(maxsize=65536)
def extent_size(extent: Extent) -> int:
    """The extent with primes for symbols."""
    size = 1
    for symbol in extent:
        size *= prime_of(symbol)
    return size


@lru_cache(maxsize=65536)
def monomial(shape: Shape) -> Monomial:
    """All symbols of a shape in one sorted product."""
    return tuple(sorted(symbol for extent in shape for symbol in extent))


@lru_cache(maxsize=65536)
def sizes_of(shape: Shape) -> tuple[int, ...]:
    return tuple(extent_size(extent) for extent in shape)


@lru_cache(maxsize=65536)
def contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


@lru_cache(maxsize=65536)
def view_strides(sizes: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides of a reshaped view, or None when the data has to be copied (ATen/TensorUtils.cpp computeStride)."""
    old = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    new = [0] * len(wanted)
    place, base, seen, made = len(wanted) - 1, old[-1][1] if old else 1, 1, 1
    for index in range(len(old) - 1, -1, -1):
        seen *= old[index][0]
        if index > 0 and old[index - 1][1] == seen * base:
            continue
        while place >= 0 and (made < seen or wanted[place] == 1):
            new[place] = made * base
            made *= wanted[place]
            place -= 1
        if made != seen:
            return None
        if index > 0:
            base, seen, made = old[index - 1][1], 1, 1
    while place >= 0:
        new[place] = 1
        place -= 1
    return tuple(new)


class Info:
    """What stays known of a storage after it died: shape, dtype, who made it and who saved it."""

    __slots__ = ("dtype", "home", "key", "kind", "label", "module", "number", "regions", "savers", "shape")

    def __init__(self, number: int, shape: Shape, dtype: str, label: str, module: str, kind: str, home: int) -> None:
        self.number = number
        self.shape = shape
        self.dtype = dtype
        self.label = label
        self.module = module
        #: "activation", "cast" (16-bit copy of a weight), "gradient" (of a parameter)
        self.kind = kind
        #: index of the segment of the model that it belongs to
        self.home = home
        self.key = monomial(shape)
        #: (operation, regions of the operation) that saved it
        self.savers: list[tuple[str, tuple[str, ...]]] = []
        self.regions: tuple[str, ...] = ()

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]


class Storage:
    """A live storage: it dies when the last tensor or graph node lets go of it, as in torch."""

    __slots__ = ("info", "tape")

    def __init__(self, tape: Tape, info: Info) -> None:
        self.tape = tape
        self.info = info

    def __del__(self) -> None:
        self.tape.freed(self.info)


class Tensor:
    """A view of a storage, with a place in the graph when a gradient flows through it."""

    __slots__ = ("dtype", "node", "parameter", "port", "shape", "sizes", "storage", "strides", "tape")

    def __init__(
        self, tape: Tape, storage: Storage | None, shape: Shape, strides: tuple[int, ...], dtype: str,
        node: Node | None = None, parameter: str | None = None,
    ) -> None:  # fmt: skip
        self.tape = tape
        #: None for what is not counted here: parameters, token ids, scalars on the host
        self.storage = storage
        self.shape = shape
        self.sizes = sizes_of(shape)
        self.strides = strides
        self.dtype = dtype
        self.node = node
        self.parameter = parameter
        self.port = 0

    @property
    def needs_grad(self) -> bool:
        return self.node is not None

    @property
    def contiguous(self) -> bool:
        wanted = contiguous_strides(self.sizes)
        return all(size == 1 or have == want for size, have, want in zip(self.sizes, self.strides, wanted, strict=True))


def dense_like(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a new dense tensor that keeps the order of dimensions of an input (TensorIterator)."""
    order = sorted(range(len(sizes)), key=lambda index: (-strides[index], index))
    made, step = [0] * len(sizes), 1
    for index in reversed(order):
        made[index] = step
        step *= sizes[index]
    return tuple(made)


def flat(extents: Iterable[Extent]) -> Extent:
    """One extent that is the product of several."""
    return tuple(symbol for extent in extents for symbol in extent)
