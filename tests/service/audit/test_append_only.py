"""What is recorded cannot be changed, removed or replaced by a statement, on either database."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from service.audit.service import append
from service.database import Database
from tests.support.databases import on_both_databases

pytestmark = on_both_databases


@pytest.fixture
def recorded(database: Database) -> Database:
    """A log with two entries, one of them with free text."""
    actor = SimpleNamespace(kind="slack", id="U345", team=None)
    with database.writing() as session:
        append(session, action="a", actor=actor, via="api", subject=None, free_text={"command": "70B"})
        append(session, action="b", actor=actor, via="api", subject=None)
    return database


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entry SET body = '{}' WHERE seq = 1",
        "UPDATE audit_entry SET actor = 'slack:somebody-else' WHERE seq = 1",
        "DELETE FROM audit_entry WHERE seq = 2",
        "DELETE FROM audit_entry",
        "UPDATE audit_text SET text = '7B'",
        "DELETE FROM audit_head",
        "UPDATE audit_head SET size = 1",
        "UPDATE audit_head SET log = 'other'",
    ],
)
def test_statements_against_the_record_are_refused(recorded: Database, statement: str) -> None:
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"), recorded.writing() as session:
        session.execute(sa.text(statement))


@pytest.mark.parametrize("table", ["audit_entry", "audit_head", "sizing"])
def test_tables_cannot_be_emptied(recorded: Database, table: str) -> None:
    postgresql = recorded.engine.dialect.name == "postgresql"
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"), recorded.writing() as session:
        if table == "sizing" and not postgresql:
            _insert_sizing(session)
        session.execute(sa.text(f"TRUNCATE {table} CASCADE" if postgresql else f"DELETE FROM {table}"))


@pytest.mark.parametrize("column", ["answer", "request", "requester"])
def test_a_sizing_cannot_be_rewritten(recorded: Database, column: str) -> None:
    with recorded.writing() as session:
        _insert_sizing(session)
    with pytest.raises(sa.exc.DBAPIError, match="sizing is append-only"), recorded.writing() as session:
        session.execute(sa.text(f"UPDATE sizing SET {column} = '{{}}'"))


@pytest.mark.parametrize("same", ["seq", "event_id", "prev", "hash"])
def test_an_entry_cannot_be_replaced(recorded: Database, same: str) -> None:
    sqlite = recorded.engine.dialect.name == "sqlite"
    columns = {"seq": "3", "event_id": "'x'", "prev": "hash", "hash": "hash || prev"} | {same: same}
    values = ", ".join(columns.values())
    with pytest.raises(sa.exc.DBAPIError), recorded.writing() as session:
        session.execute(
            sa.text(
                f"INSERT {'OR REPLACE ' if sqlite else ''}INTO audit_entry"
                " (seq, event_id, prev, hash, body, occurred_at, actor, action)"
                f" SELECT {values}, '{{}}', occurred_at, actor, action FROM audit_entry WHERE seq = 2"
            )
        )
    with recorded.reading() as session:
        assert session.execute(sa.text("SELECT count(*) FROM audit_entry WHERE body = '{}'")).scalar() == 0


def _insert_sizing(session: sa.orm.Session) -> None:
    session.execute(
        sa.text(
            "INSERT INTO sizing (id, event_id, recorded_at, requester, via, model, gpu, gpus, verdict, verdict_text,"
            " request, answer) SELECT 'sz_1', event_id, occurred_at, actor, 'api', 'm', 'g', 1, 'fits', '', '{}', '{}'"
            " FROM audit_entry WHERE seq = 1"
        )
    )
