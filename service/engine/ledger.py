"""The ledger: every byte is a row, a term is a sum of rows, a moment of the step is a choice of rows that are alive.

A row is one tensor of one layer (or one outside the layers) of one micro-batch on one rank. Rows that are created and
freed together form a bundle, which says how many times it is alive at each moment of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, overload

from service.engine.elementwise import Int

TermName = Literal[
    "weights", "gradients", "master_weights", "optimizer_moments", "activations", "working", "runtime"
]  # fmt: skip
TERMS: tuple[TermName, ...] = (
    "weights", "gradients", "master_weights", "optimizer_moments", "activations", "working", "runtime",
)  # fmt: skip
STATE_TERMS: tuple[TermName, ...] = TERMS[:4]

#: The moments of a step in its order. Backward of a layer is looked at twice: at the first layer that backward meets
#: (the last one: all saved tensors, few gradients) and at the last it meets (one layer left, nearly all gradients).
INSTANTS = (
    "forward_end", "loss", "first_backward", "layer_backward_first", "layer_backward_last", "backward_end",
    "optimizer_step",
)  # fmt: skip
MOMENTS = ("forward_end", "loss", "first_backward", "layer_backward", "backward_end", "optimizer_step")

BYTES_OF = {
    "fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int64": 8, "int32": 4, "uint8": 1, "bool": 1, "uint64": 8,
    "complex64": 8,
}  # fmt: skip


#: where a bundle sits that belongs to no layer
OUTSIDE = "outside the layers"


class Dim(NamedTuple):
    """One extent of a tensor on this rank: its symbol, its local size and the degrees that divided it."""

    symbol: str
    size: Int
    sharded_by: tuple[str, ...] = ()


class Row(NamedTuple):
    """One tensor: what it is, how large it is on this rank, what divides it, what frees it early, and why it exists."""

    term: TermName
    name: str
    module: str
    shape: tuple[Dim, ...]
    dtype: str
    bytes: Int
    why: str
    source: str
    dropped_by: tuple[str, ...] = ()

    @property
    def sharded_by(self) -> tuple[str, ...]:
        """The parallel degrees that divide this tensor, in the order of its dimensions."""
        return tuple(dict.fromkeys(degree for dim in self.shape for degree in dim.sharded_by))

    @property
    def formula(self) -> str:
        """The shape in symbols times the size of an element: "b·s × f × 2 B"."""
        return " × ".join([*(dim.symbol for dim in self.shape), f"{BYTES_OF[self.dtype]} B"])

    @property
    def substitution(self) -> str:
        """The formula with its local sizes put in: "8192 × 28672 × 2 B"."""
        return " × ".join([*(str(dim.size) for dim in self.shape), f"{BYTES_OF[self.dtype]} B"])


def tensor(
    term: TermName,
    name: str,
    module: str,
    shape: tuple[Dim, ...],
    dtype: str,
    *,
    why: str,
    source: str,
    dropped_by: tuple[str, ...] = (),
) -> Row:
    """A row whose bytes are the product of its local dimensions times the size of one element."""
    size: Int = BYTES_OF[dtype]
    for dim in shape:
        size = size * dim.size
    return Row(term, name, module, shape, dtype, size, why, source, dropped_by)


class LaterRows(Sequence[Row]):
    """Rows whose sum is known before they are written out; they are written out when somebody looks at them."""

    def __init__(self, size: Int, write: Callable[[], tuple[Row, ...]]) -> None:
        self.bytes = size
        self._write = write

    @cached_property
    def written(self) -> tuple[Row, ...]:
        return self._write()

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self.written[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.written)

    def __len__(self) -> int:
        return len(self.written)


class Bundle(NamedTuple):
    """Rows that live together. `alive` counts, per instant of `INSTANTS`, how many copies of all rows exist."""

    term: TermName
    name: str
    rows: Sequence[Row]
    alive: tuple[Int, ...]
    layer: str = OUTSIDE

    @property
    def bytes(self) -> Int:
        """Bytes of one copy."""
        return total_bytes(self.rows)


def total_bytes(rows: Iterable[Row]) -> Int:
    """Sum of the rows' bytes."""
    if isinstance(rows, LaterRows):
        return rows.bytes
    total: Int = 0
    for row in rows:
        total = total + row.bytes
    return total


def kept(rows: Iterable[Row], dropped: frozenset[str]) -> Iterator[Row]:
    """The rows that stay when the recompute policy drops everything marked with one of `dropped`."""
    return (row for row in rows if dropped.isdisjoint(row.dropped_by))
