"""What running a model's program once tells: the saved set and the fullest instants of every part of the model.

Sizes are still symbols here, so one inventory serves every shape and layout of a run with the same facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import NamedTuple

from service.engine.architecture import Architecture, layer_kinds
from service.engine.autograd.dominance import possible_maxima
from service.engine.autograd.graph import run_backward
from service.engine.autograd.storage import Info, Monomial, Shape
from service.engine.autograd.tape import Tape
from service.engine.ledger import TermName
from service.engine.saved_tensors.code.model import Facts, Model
from service.engine.saved_tensors.code.registry import program
from service.engine.saved_tensors.reasons import reason, source_of
from service.engine.saved_tensors.units import units_of


class Template(NamedTuple):
    """A row whose sizes are still symbols; `number` tensors are alike. `home` is the segment it belongs to."""

    name: str
    module: str
    shape: Shape
    dtype: str
    number: int
    kind: str
    home: int
    saved: bool
    dropped_by: tuple[str, ...]
    why: str
    source: str
    key: Monomial
    itemsize: int

    @property
    def term(self) -> TermName:
        """The term that this tensor of a layer in progress belongs to."""
        if self.kind == "gradient":
            return "gradients"
        return "activations" if self.saved and self.kind == "activation" else "working"


#: bytes as a polynomial: coefficient of each product of symbols
Polynomial = tuple[tuple[Monomial, int], ...]


class Moment:
    """One instant that may be the fullest of its segment, without what earlier segments keep anyway."""

    def __init__(self, total: Polynomial, alive: tuple[Info, ...], kept: frozenset[int]) -> None:
        self.total = total
        self._alive = alive
        self._kept = kept

    @cached_property
    def parts(self) -> dict[TermName, tuple[Template, ...]]:
        """Everything alive then by term, alike tensors counted together."""
        found: dict[TermName, list[Template]] = {}
        for template in _templates(self._alive, None, self._kept):
            found.setdefault(template.term, []).append(template)
        return {term: tuple(templates) for term, templates in found.items()}


class Segment(NamedTuple):
    """One part of the model: what comes before the layers, one kind of layer, or what comes after them."""

    saved: tuple[Template, ...]
    #: 16-bit weight copies alive when forward ends (autocast's cache), and after the context was left
    casts_in_forward: tuple[Template, ...]
    casts_in_backward: tuple[Template, ...]
    #: alive after forward only because a checkpointed call's arguments hold it
    held: tuple[Template, ...]
    forward: tuple[Moment, ...]
    backward: tuple[Moment, ...]


class Inventory(NamedTuple):
    """Segments in the order of forward: front, kinds of layers, tail."""

    segments: tuple[Segment, ...]


@lru_cache(maxsize=512)
def inventory(architecture: Architecture, facts: Facts) -> Inventory:
    """Run the program of this architecture's modelling code forward and backward."""
    tape = Tape(
        facts.ones,
        autocast=facts.compute if facts.autocast else None,
        gradients=facts.gradients,
        weights=facts.weights,
    )
    kinds = layer_kinds(architecture)
    units = units_of(architecture, facts.recomputed_layers)
    model = Model(tape, architecture, facts, kinds, units, kinds[0])
    model.heads, model.kv_heads = tape.extent("kv", "g"), tape.extent("kv")
    segments = len(units) + 2
    loss = [program(architecture)(model)]
    in_forward = tuple(tape.live.values())
    tape.leave_autocast()
    after = tuple(tape.live.values())
    tape.enter(segments - 1, "backward")
    node = loss.pop().node
    assert node is not None
    run_backward(tape, node, tape.new((), "fp32", "gradient of the loss"))
    del node
    tape.close()
    return _summary(tape, segments, in_forward, after, facts)


def _summary(
    tape: Tape, segments: int, in_forward: tuple[Info, ...], after: tuple[Info, ...], facts: Facts
) -> Inventory:
    kept = frozenset(info.number for info in after if info.savers or info.kind == "cast")
    made = []
    for home in range(segments):
        mine = [info for info in after if info.home == home]
        made.append(
            Segment(
                saved=_templates((info for info in mine if info.savers and info.kind != "cast"), True),
                casts_in_forward=_templates((i for i in in_forward if i.home == home and i.kind == "cast"), False),
                casts_in_backward=_templates((info for info in mine if info.kind == "cast"), False),
                held=_templates(
                    (info for info in mine if not info.savers and info.kind != "cast" and info.shape), False
                ),
                forward=_moments(tape, "forward", home, kept, facts),
                backward=_moments(tape, "backward", home, kept, facts),
            )
        )
    return Inventory(tuple(made))


def _moments(tape: Tape, phase: str, home: int, kept: frozenset[int], facts: Facts) -> tuple[Moment, ...]:
    instants = tape.instants.get((phase, home), [])
    found: list[tuple[dict[Monomial, int], tuple[Info, ...]]] = []
    for index in possible_maxima([instant.total for instant in instants]):
        mine = tuple(info for info in instants[index].alive if _counted_here(info, phase, home, kept, facts))
        total: dict[Monomial, int] = {}
        for info in mine:
            total[info.key] = total.get(info.key, 0) + info.itemsize
        found.append((total, mine))
    fullest = possible_maxima([total for total, _ in found])
    return tuple(Moment(tuple(found[index][0].items()), found[index][1], kept) for index in fullest)


def _counted_here(info: Info, phase: str, home: int, kept: frozenset[int], facts: Facts) -> bool:
    """Whether the layer in progress answers for a storage, or the segments before and after it do."""
    if info.kind == "gradient" and (facts.gradients == "unseen" or (phase == "backward" and info.home > home)):
        return False
    if info.kind == "cast" and phase == "forward":
        return info.home >= home
    return not (info.number in kept and info.home < home)


def _templates(infos: Iterable[Info], saved: bool | None, kept: frozenset[int] | None = None) -> tuple[Template, ...]:
    """Rows of the storages, alike ones counted together; `saved` None takes what `kept` says."""
    counts: dict[tuple[object, ...], list[object]] = {}
    for info in infos:
        is_saved = saved if saved is not None else info.number in (kept or ())
        dropped = _dropped_by(info)
        key = (info.label, info.module, info.shape, info.dtype, info.kind, info.home, is_saved, dropped)
        entry = counts.setdefault(key, [info, 0])
        entry[1] = int(entry[1]) + 1  # type: ignore[call-overload]
    return tuple(
        _template(info, int(count), bool(key[6]), key[7])  # type: ignore[arg-type, call-overload]
        for key, (info, count) in counts.items()
    )


def _template(info: Info, count: int, saved: bool, dropped: tuple[str, ...]) -> Template:
    operation = info.savers[0][0] if info.savers else ""
    return Template(
        info.label, info.module or "model", info.shape, info.dtype, count, info.kind, info.home, saved, dropped,
        reason(operation, info.kind), source_of(operation), info.key, info.itemsize,
    )  # fmt: skip


def _dropped_by(info: Info) -> tuple[str, ...]:
    """The regions whose recomputation frees a storage: it was made inside, and nothing outside saved it."""
    return tuple(
        region for region in info.regions if info.savers and all(region in regions for _, regions in info.savers)
    )
