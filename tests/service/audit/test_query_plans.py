"""A page of entries costs the same however long the log is: every search goes by an index, and sorts nothing."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from service import cursors
from service.audit import entries, reading
from service.database import Database
from tests.support.bulk_log import AT_ONCE, START, fill
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault

SEARCHES: list[dict[str, str]] = [
    {},
    {"actor": "slack:T012/U007"},
    {"action": "token.created"},
    {"actor": "slack:T012/U000", "action": "token.created"},
    {"subject": "sz_00000000000000000000001000"},
]
LONG = 4 * AT_ONCE


@on_both_databases
def test_searches_go_by_an_index_and_sort_nothing(database: Database) -> None:
    fill(database, LONG)
    asked: list[tuple[str, object]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(connection: object, cursor: object, statement: str, parameters: object, *rest: object) -> None:
        if "FROM audit_entry" in statement and not statement.startswith("EXPLAIN"):
            asked.append((statement, parameters))

    with database.reading() as session:
        for filters in SEARCHES:
            for cursor in (None, cursors.encode(LONG // 2)):
                entries.search(session, filters=filters, cursor=cursor)
        reading.span(session, since=START, until=START)
        explain = "EXPLAIN QUERY PLAN " if session.connection().dialect.name == "sqlite" else "EXPLAIN "
        assert len(asked) == 2 * len(SEARCHES) + 2
        for statement, parameters in list(asked):
            found = session.connection().exec_driver_sql(explain + statement, parameters).all()  # type: ignore[arg-type]
            plan = "\n".join(str(row[-1]) for row in found)
            # SQLite walks the primary key itself, which it calls a scan of the table.
            bad = ("Seq Scan", "Sort") if explain == "EXPLAIN " else ("TEMP B-TREE",)
            assert not any(word in plan for word in bad), f"{statement}\n{plan}"
            if explain != "EXPLAIN " and "WHERE" in statement:
                assert "SEARCH" in plan, f"{statement}\n{plan}"


@pytest.mark.parametrize("count", [1, 300])
def test_the_bulk_loader_writes_what_appending_writes(database: Database, count: int) -> None:
    fill(database, count)
    assert chain_fault(database) is None
    with database.reading() as session:
        copies = session.execute(sa.text("SELECT body, actor, action, subject FROM audit_entry")).all()
    assert all(f'"subject":"{row.subject}"' in row.body and f'"action":"{row.action}"' in row.body for row in copies)
