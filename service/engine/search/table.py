"""Many layouts as columns of integers, one row a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from service.engine.layout import SHARD_LEVEL, Layout

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: `shard_degree` of a layout that shards over all of its data-parallel ranks
WHOLE = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of equal length. `shard` is a level of `layout.SHARDS`, `recompute` an index into the policies that the
    question leaves open; the others are degrees and counts."""

    tp: Column
    pp: Column
    vpp: Column
    cp: Column
    ep: Column
    etp: Column
    dp: Column
    micro_batch: Column
    shard: Column
    shard_degree: Column
    recompute: Column

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def gpus(self) -> Column:
        return self.tp * self.pp * self.cp * self.dp

    def take(self, rows: Column | Mask) -> Table:
        """The rows chosen by index or mask."""
        return Table(**{entry.name: getattr(self, entry.name)[rows] for entry in fields(self)})

    def row(self, index: int) -> dict[str, int]:
        """One layout as plain integers."""
        return {entry.name: int(getattr(self, entry.name)[index]) for entry in fields(self)}


def stacked(tables: Sequence[Table]) -> Table:
    """The rows of several tables one after the other."""
    return Table(**{entry.name: np.concatenate([getattr(table, entry.name) for table in tables])
                    for entry in fields(Table)})  # fmt: skip


def product(*columns: Sequence[int]) -> list[Column]:
    """Every combination of the columns' values, the last column running fastest."""
    grids = np.meshgrid(*(np.asarray(values, dtype=np.int64) for values in columns), indexing="ij")
    return [grid.reshape(-1) for grid in grids]


def of_layout(layout: Layout, micro_batch: int) -> Table:
    """One layout as a table of one row; its recompute policy is policy 0."""
    degrees = {
        "tp": layout.tp, "pp": layout.pp, "vpp": layout.vpp, "cp": layout.cp, "ep": layout.ep, "etp": layout.etp,
        "dp": layout.dp, "micro_batch": micro_batch, "shard": SHARD_LEVEL[layout.shard],
        "shard_degree": WHOLE if layout.shard_degree is None else layout.shard_degree, "recompute": 0,
    }  # fmt: skip
    return Table(**{name: np.asarray([int(value)], dtype=np.int64) for name, value in degrees.items()})
