"""Many processes append at once: no fork, no gap, nothing acknowledged is lost, nobody sees an error."""

from __future__ import annotations

import subprocess
import sys

import sqlalchemy as sa

from service.audit.models import AuditEntry, AuditHead
from service.database import Database
from tests.support.audit_verifier import verify
from tests.support.databases import on_both_databases

WRITER = """
import sys
from types import SimpleNamespace
from service.audit.service import append
from service.database import Database
from service.settings import Settings

url, name, entries = sys.argv[1:]
actor = SimpleNamespace(kind="writer", id=name, team=None)
with Database(Settings(database_url=url)) as database:
    for number in range(int(entries)):
        with database.writing() as session:
            receipt = append(session, action="sizing.created", actor=actor, via="api", subject=f"{name}-{number}")
        print(receipt.seq, receipt.leaf, flush=True)
"""
WRITERS, ENTRIES = 6, 40


@on_both_databases
def test_parallel_writers_make_one_chain(database: Database) -> None:
    url = database.url.render_as_string(hide_password=False)
    start = [sys.executable, "-W", "error", "-c", WRITER, url]
    writers = [
        subprocess.Popen([*start, f"w{n}", str(ENTRIES)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(WRITERS)
    ]
    ended = [writer.communicate(timeout=120) for writer in writers]

    assert [errors for _, errors in ended] == [""] * WRITERS
    acknowledged = [int(line.split()[0]) for output, _ in ended for line in output.splitlines()]
    with database.reading() as session:
        columns = (AuditEntry.seq, AuditEntry.body, AuditEntry.prev, AuditEntry.hash)
        rows = [tuple(row) for row in session.execute(sa.select(*columns).order_by(AuditEntry.seq))]
        size, head = session.execute(sa.select(AuditHead.size, AuditHead.head)).one()
    assert sorted(acknowledged) == list(range(1, WRITERS * ENTRIES + 1))
    assert verify(rows, size, head) is None
    # They really ran side by side: one writer's numbers have others between them.
    first = [int(line.split()[0]) for line in ended[0][0].splitlines()]
    assert first[-1] - first[0] >= ENTRIES
