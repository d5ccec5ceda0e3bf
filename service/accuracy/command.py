"""`trainmem accuracy`: the score of this engine on the packaged cases."""

from __future__ import annotations

import json
from typing import Any

from service.accuracy.cases import packaged, trusted
from service.accuracy.prediction import predictions
from service.accuracy.score import Score, score
from service.accuracy.table import lines


def report(source: str | None = None, worst: int = 0) -> str:
    """The table as text."""
    found = list(predictions(trusted(packaged(), source)))
    return "\n".join(lines(score(found), found, worst))


def as_json(source: str | None = None) -> str:
    """The same figures for a program."""
    result = score(list(predictions(trusted(packaged(), source))))
    return json.dumps(document(result), indent=1)


def document(result: Score) -> dict[str, Any]:
    """A score as JSON-ready members."""
    return {
        "cases": result.cases,
        "refused": [one.case.id for one in result.refused],
        "levels": {name: one._asdict() for name, one in result.levels.items()},
        "sources": {name: one._asdict() for name, one in result.sources.items()},
        "verdicts": result.verdicts._asdict() if result.verdicts else None,
        "holds": result.holds,
    }


def sources() -> tuple[str, ...]:
    """The source families, in alphabetical order."""
    return tuple(sorted({case.source for case in packaged()}))
