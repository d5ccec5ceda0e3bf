"""Real sizes put into the symbols of an inventory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from service.engine.architecture import LayerKind
from service.engine.autograd.storage import Monomial
from service.engine.elementwise import Int
from service.engine.ledger import Dim, LaterRows, Row, TermName
from service.engine.saved_tensors.inventory import Moment, Template
from service.engine.saved_tensors.scope import Scope
from service.engine.saved_tensors.symbols import dimensions


class Sizes:
    """Sizes of one segment on one rank; products are remembered. A symbol that is a number stands for itself."""

    def __init__(self, dims: dict[str, Dim]) -> None:
        self._dims = dims
        self._known: dict[Monomial, Int] = {(): 1}
        self._totals: dict[Moment, Int] = {}
        self._extents: dict[tuple[str, ...], Dim] = {}

    def product(self, key: Monomial) -> Int:
        """The size of a product of symbols."""
        found = self._known.get(key)
        if found is None:
            found = 1
            for symbol in key:
                found = found * (int(symbol) if symbol.isdigit() else self._dims[symbol].size)
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

    def rows(self, templates: tuple[Template, ...], term: TermName) -> Sequence[Row]:
        """Rows of templates, written out when somebody looks at them."""
        return LaterRows(self.bytes(templates), lambda: tuple(self.row(template, term) for template in templates))

    def _dim(self, extent: tuple[str, ...]) -> Dim:
        found = self._extents.get(extent)
        if found is None:
            found = self._extents[extent] = self._made(extent)
        return found

    def _made(self, extent: tuple[str, ...]) -> Dim:
        if len(extent) == 1 and not extent[0].isdigit():
            return self._dims[extent[0]]
        sharded: dict[str, None] = {}
        for symbol in extent:
            if not symbol.isdigit():
                sharded.update(dict.fromkeys(self._dims[symbol].sharded_by))
        # query heads are key heads times queries a key head
        symbol = "·".join(extent).replace("kv·g", "a")
        return Dim(symbol, self.product(extent), tuple(sharded))

    def total(self, moment: Moment) -> Int:
        """Bytes of everything alive at a moment."""
        found = self._totals.get(moment)
        if found is None:
            found = 0
            for key, coefficient in moment.total:
                found = found + self.product(key) * coefficient
            self._totals[moment] = found
        return found

    def bytes(self, templates: Iterable[Template]) -> Int:
        """Bytes of all templates together."""
        size: Int = 0
        for template in templates:
            size = size + self.product(template.key) * (template.itemsize * template.number)
        return size


def sizes_of_scope(scope: Scope, kind: LayerKind, *, encoder: bool) -> Sizes:
    """The sizes of one kind of layer, made once a scope."""
    key = (kind, encoder)
    found = scope.symbol_sizes.get(key)
    if not isinstance(found, Sizes):
        found = scope.symbol_sizes[key] = Sizes(dimensions(scope, kind, encoder=encoder))
    return found
