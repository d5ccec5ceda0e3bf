"""The ledger of an answer, row by row: every tensor with its formula, its sizes put in, why it exists and who says so.

The rows of a term at a moment sum to that term at that moment; nothing is computed here that was not computed for the
answer itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from service.engine.errors import FieldError, InvalidInput, nearest
from service.engine.ledger import MOMENTS, TERMS, Row, TermName
from service.engine.size import Sizing, StageSizing
from service.engine.timeline import instant_of_moment, moment_name, moments

#: what the process takes beside its tensors, in the order of the steps from allocated to device
RUNTIME_PARTS = (
    ("allocator", "blocks that torch's caching allocator holds and no tensor uses"),
    ("context", "the driver's context, loaded kernels and libraries of one process"),
    ("communicators", "buffers of collective communication, one set a group"),
)


class Explained(NamedTuple):
    """One row of an explanation. `bytes` is one copy, `copies` how many are alive, `total_bytes` their product."""

    term: TermName
    moment: str
    group: str
    bundle: str
    name: str
    module: str
    shape: tuple[tuple[str, int, tuple[str, ...]], ...]
    dtype: str | None
    formula: str
    substitution: str
    bytes: int
    copies: int
    total_bytes: int
    sharded_by: tuple[str, ...]
    dropped_by: tuple[str, ...]
    why: str
    source: str


def explain(sizing: Sizing, term: str | None = None, moment: str | None = None) -> list[dict[str, Any]]:
    """Rows of one term, or of all terms, on the stage that the answer is for: a list ready for JSON.

    Without `moment`, one term is shown at the moment at which it is largest and all terms at the peak. Rows are
    grouped by layer kind, largest first within a group. Raises InvalidInput for an unknown term or moment.
    """
    _known(term, TERMS, "/term")
    _known(moment, MOMENTS, "/moment")
    stage = sizing.peak
    instant = _instant(stage, term, moment)
    rows = [row for row in _rows(stage, instant) if term is None or row.term == term]
    return [_json(row) for row in rows]


def total_bytes(rows: Sequence[dict[str, Any]]) -> int:
    """Sum of an explanation: the term (or terms) that it explains."""
    return sum(row["total_bytes"] for row in rows)


def _known(word: str | None, allowed: Sequence[str], pointer: str) -> None:
    if word is not None and word not in allowed:
        raise InvalidInput(
            [
                FieldError(
                    pointer, f"there is no {pointer[1:]} {word!r}", word, ", ".join(allowed), nearest(word, allowed)
                )
            ]
        )


def _instant(stage: StageSizing, term: str | None, moment: str | None) -> int:
    if moment is not None:
        return instant_of_moment(stage.line, moment)
    if term is None or term == "runtime":
        return stage.instant
    by_moment = [(int(stage.line.at(instant)[term]), instant) for _, instant in moments(stage.line)]  # type: ignore[index]
    largest = max(size for size, _ in by_moment)
    return next(instant for size, instant in by_moment if size == largest)


def _rows(stage: StageSizing, instant: int) -> Iterator[Explained]:
    """Everything alive at an instant: by term, then by group in the order of the ledger, then by size."""
    found: list[Explained] = []
    for bundle in stage.bundles:
        copies = int(bundle.alive[instant])
        if copies:
            found += [_explained(row, bundle.name, bundle.layer, copies, instant) for row in bundle.rows]
    groups = list(dict.fromkeys(row.group for row in found))
    found.sort(key=lambda row: (TERMS.index(row.term), groups.index(row.group), -row.total_bytes))
    yield from found
    yield from _runtime(stage, instant)


def _explained(row: Row, bundle: str, group: str, copies: int, instant: int) -> Explained:
    return Explained(
        term=row.term,
        moment=moment_name(instant),
        group=group,
        bundle=bundle,
        name=row.name,
        module=row.module,
        shape=tuple((dim.symbol, int(dim.size), dim.sharded_by) for dim in row.shape),
        dtype=row.dtype,
        formula=row.formula,
        substitution=row.substitution,
        bytes=int(row.bytes),
        copies=copies,
        total_bytes=int(row.bytes) * copies,
        sharded_by=row.sharded_by,
        dropped_by=row.dropped_by,
        why=row.why,
        source=row.source,
    )


def _runtime(stage: StageSizing, instant: int) -> Iterator[Explained]:
    sizes = {
        "allocator": int(stage.runtime.slack),
        "context": int(stage.runtime.context),
        "communicators": int(stage.runtime.communicators),
    }
    for name, why in RUNTIME_PARTS:
        size = sizes[name]
        if size:
            yield Explained(
                "runtime", moment_name(instant), "process", "runtime", name, "runtime", (), None, f"{size} B",
                f"{size} B", size, 1, size, (), (), why, "measured; see docs/accuracy.md",
            )  # fmt: skip


def _json(row: Explained) -> dict[str, Any]:
    shape = [{"symbol": symbol, "size": size, "sharded_by": list(by)} for symbol, size, by in row.shape]
    return {
        **row._asdict(),
        "shape": shape,
        "sharded_by": list(row.sharded_by),
        "dropped_by": list(row.dropped_by),
    }
