"""The figures that tests hold: `python -m service.accuracy.figures > tests/accuracy/figures.json`."""

from __future__ import annotations

import json

from service.accuracy.cases import packaged, trusted
from service.accuracy.prediction import predictions
from service.accuracy.score import score


def main() -> None:
    """Print medians and 90th percentiles by family and level, to a tenth of a point."""
    result = score(list(predictions(trusted(packaged()))))
    groups = {
        title: {name: {"median": round(one.median, 3), "p90": round(one.p90, 3)} for name, one in found.items()}
        for title, found in (("levels", result.levels), ("sources", result.sources))
    }
    share = round(result.verdicts.fits_but_oom, 3) if result.verdicts else 0.0
    print(json.dumps({**groups, "verdicts": {"fits_but_oom": share}}, indent=1))


if __name__ == "__main__":
    main()
