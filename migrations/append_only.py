"""Triggers that keep recorded rows as they were written, on both databases.

They stop accidents and casual edits. Whoever owns the database can drop a trigger, which is what the hash chain and
checkpoints outside the database are for (docs/audit.md).
"""

from __future__ import annotations

from alembic import op

REFUSE = """
CREATE FUNCTION trainmem_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$
"""


def create_refusal() -> None:
    """What PostgreSQL's triggers call; needed once."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(REFUSE)


def forbid_changes(table: str, *unique: str, erasable: bool = False) -> None:
    """No UPDATE of `table`, and no DELETE or TRUNCATE unless its rows are `erasable`.

    `unique` are its unique columns: SQLite's INSERT OR REPLACE deletes a row without asking a DELETE trigger.
    """
    if op.get_bind().dialect.name == "postgresql":
        events = "UPDATE" if erasable else "UPDATE OR DELETE OR TRUNCATE"
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE {events} ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION trainmem_append_only()"
        )
        return
    for event in ("UPDATE",) if erasable else ("UPDATE", "DELETE"):
        _sqlite_trigger(table, event)
    if unique:
        taken = " OR ".join(f"{column} = NEW.{column}" for column in unique)
        _sqlite_trigger(table, "INSERT", when=f"EXISTS (SELECT 1 FROM {table} WHERE {taken})")


def forbid_shrinking(table: str, key: str, size: str) -> None:
    """Rows of `table` stay, keep their `key`, and their `size` never falls."""
    backwards = f"NEW.{size} < OLD.{size} OR NEW.{key} <> OLD.{key}"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION trainmem_append_only()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_grows BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({backwards})"
            " EXECUTE FUNCTION trainmem_append_only()"
        )
        return
    _sqlite_trigger(table, "DELETE")
    _sqlite_trigger(table, "UPDATE", when=backwards)


def _sqlite_trigger(table: str, event: str, when: str | None = None) -> None:
    condition = f" WHEN {when}" if when else ""
    op.execute(
        f"CREATE TRIGGER {table}_no_{event.lower()} BEFORE {event} ON {table}{condition}"
        f" BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )
