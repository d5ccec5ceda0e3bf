"""The terms of memory: a row each for the table, and one line for the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.table import Table


def term_table(sizing: Mapping[str, Any]) -> Table:
    """Whole model against the fullest GPU at its peak; `working` and `runtime` exist on a GPU only."""
    whole = {term["term"]: term["bytes"] for term in sizing["whole_model"]["terms"]}
    per_gpu = sizing["per_gpu"]["terms"]
    total = sum(term["bytes"] for term in per_gpu)
    rows = [
        (
            name(term["term"]).capitalize(),
            quantities.both(whole[term["term"]]) if term["term"] in whole else texts.NOT_PER_MODEL,
            quantities.both(term["bytes"]),
            quantities.share(term["bytes"], total),
            texts.SCALES_WITH.get(term["scales_with"], term["scales_with"]),
        )
        for term in per_gpu
    ]
    rows.append(
        (texts.TABLE_TOTAL, quantities.both(sum(whole.values())), quantities.both(total), "100%", texts.NOT_PER_MODEL)
    )
    return Table(headings=texts.TABLE_HEADINGS, rows=tuple(rows), numeric=frozenset({1, 2, 3}))


def term_line(sizing: Mapping[str, Any]) -> str:
    """ "Per GPU: optimizer moments 16.4 GiB, activations 4.6 GiB, …": largest first, nothing that is zero."""
    return f"Per GPU: {listed(sorted(sizing['per_gpu']['terms'], key=lambda term: -term['bytes']))}."


def listed(terms: Iterable[Mapping[str, Any]]) -> str:
    """What weighs anything: the floor leaves a few bytes of every sharded term."""
    return ", ".join(
        f"{name(term['term'])} {quantities.gib(term['bytes'])}" for term in terms if term["bytes"] >= quantities.MIB
    )


def name(term: str) -> str:
    return texts.TERMS.get(term, term.replace("_", " "))
