"""Looking at what a service wrote, past the service."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from service.database import Database
from tests.support.audit_verifier import verify


def entries(database: Database) -> list[dict[str, Any]]:
    """The events of the audit in order, as JSON."""
    with database.reading() as session:
        return [json.loads(body) for (body,) in session.execute(sa.text("SELECT body FROM audit_entry ORDER BY seq"))]


def chain_fault(database: Database) -> str | None:
    """What an independent verifier finds wrong with the audit."""
    with database.reading() as session:
        rows = [
            (seq, body, bytes(prev), bytes(chained))
            for seq, body, prev, chained in session.execute(
                sa.text("SELECT seq, body, prev, hash FROM audit_entry ORDER BY seq")
            )
        ]
        size, head = session.execute(sa.text("SELECT size, head FROM audit_head")).one()
    return verify(rows, size, bytes(head))


def counts(database: Database) -> dict[str, int]:
    """How many rows the tables have that a request may write."""
    tables = ("sizing", "audit_entry", "audit_text", "idempotency_key")
    with database.reading() as session:
        return {table: session.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one() for table in tables}
