"""Measured runs of public sources, each with a request in the words of the contract. Packaged with the project."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

Kind = Literal["allocated", "reserved", "device", "fits", "oom"]
LEVELS: tuple[Kind, ...] = ("allocated", "reserved", "device")
#: sources with fewer cases of a kind than this share one weight
OWN_WEIGHT = 5
SMALL = "small sources"
TRUSTED = frozenset({"high", "medium"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement. `bytes` is None for `fits` and `oom`; `rank` says whose peak it is ("max", "stage 3", …)."""

    id: str
    source: str
    url: str
    kind: Kind
    bytes: int | None
    rank: str
    confidence: str
    weight: float
    request: Mapping[str, Any]
    notes: str = ""

    @property
    def is_verdict(self) -> bool:
        """Whether the run tells only that it fitted or ran out of memory."""
        return self.bytes is None


@lru_cache(maxsize=1)
def packaged() -> tuple[Case, ...]:
    """Every packaged case, in file order."""
    models = _lines("models.jsonl")
    return tuple(_case(row, models) for row in _lines("cases.jsonl"))


def _lines(name: str) -> list[dict[str, Any]]:
    text = resources.files("service.accuracy").joinpath("data", name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _case(row: Mapping[str, Any], models: list[dict[str, Any]]) -> Case:
    measured = row["measured"]
    return Case(
        id=row["id"],
        source=row["source"],
        url=row["url"],
        kind=measured["kind"],
        bytes=measured.get("bytes"),
        rank=measured.get("rank", "max"),
        confidence=row["confidence"],
        weight=row["weight"],
        request={"model": models[row["model"]], **row["request"]},
        notes=row.get("notes", ""),
    )


def trusted(cases: Iterable[Case], source: str | None = None) -> list[Case]:
    """Cases of high and medium confidence, weighted so that every family of a kind counts the same."""
    chosen = [case for case in cases if case.confidence in TRUSTED and source in (None, case.source)]
    counts = Counter((case.source, case.kind) for case in chosen)
    totals: defaultdict[tuple[str, str], float] = defaultdict(float)
    families = [case.source if counts[case.source, case.kind] >= OWN_WEIGHT else SMALL for case in chosen]
    for case, family in zip(chosen, families, strict=True):
        totals[family, case.kind] += case.weight
    return [
        replace(case, weight=case.weight / totals[family, case.kind])
        for case, family in zip(chosen, families, strict=True)
    ]
