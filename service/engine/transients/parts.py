"""The parts that transients are built from."""

from __future__ import annotations

from service.engine.elementwise import Int, repeated
from service.engine.ledger import Bundle, Dim, Row, tensor
from service.engine.stage import Prepared
from service.engine.state import Holding, unsharded_elements


def working(name: str, module: str, shape: tuple[Dim, ...], dtype: str, why: str, source: str) -> Row:
    """A row of the `working` term."""
    return tensor("working", name, module, shape, dtype, why=why, source=source)


def bundle(name: str, rows: tuple[Row, ...], alive: tuple[Int, ...], copies: Int = 1) -> Bundle:
    return Bundle("working", name, rows, repeated(copies, alive))


def elements(prepared: Prepared, block: tuple[Holding, ...]) -> Int:
    return unsharded_elements(block, prepared.architecture, prepared.layout, prepared.padded_vocab)
