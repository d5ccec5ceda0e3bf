"""Rows of a table as plans that can be sized."""

from __future__ import annotations

from service.engine.layout import SHARDS
from service.engine.question import Plan, Question, plan
from service.engine.search.space import recomputes
from service.engine.search.table import WHOLE, Table


def plan_of(question: Question, layouts: Table, index: int) -> Plan:
    """One row as a plan of its question."""
    row = layouts.row(index)
    degree = row.pop("shard_degree")
    return plan(
        question,
        tp=row["tp"], pp=row["pp"], vpp=row["vpp"], cp=row["cp"], ep=row["ep"], etp=row["etp"], dp=row["dp"],
        micro_batch=row["micro_batch"],
        shard=SHARDS[row["shard"]],
        shard_degree=None if degree == WHOLE else degree,
        recompute=recomputes(question)[row["recompute"]],
        uneven=True,
    )  # fmt: skip
