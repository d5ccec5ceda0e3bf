"""Before serving: verify what was recorded, and record under which settings the service runs from now on."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

import sqlalchemy as sa

from service.audit import checkpoints, faults, reading
from service.audit import service as audit
from service.audit.models import AuditEntry
from service.database import Database

SETTINGS_CHANGED = "settings.changed"


def verify(database: Database) -> str:
    """Verify the whole log; says so. If it is not as it was written, writing stops and every fault is told loudly."""
    started_s = time.perf_counter()
    with database.reading() as session:
        reading.one_state(session)
        found = checkpoints.verify(session)
        fresh = faults.unknown(session, found.faults)
    if not fresh:
        return f"The audit is whole: {found.size:,} entries, verified in {time.perf_counter() - started_s:.1f} s."
    faults.stop(database, fresh)
    for fault in fresh:
        print(f"AUDIT FAULT: {fault}", file=sys.stderr, flush=True)
    return (
        f"The audit is NOT what was written ({len(fresh)} faults). Reading goes on; nothing is recorded until an"
        " administrator has looked at it and runs: trainmem audit acknowledge --reason …"
    )


def record_settings(database: Database, *, policy: Mapping[str, str], by: audit.Actor) -> bool:
    """Append the settings that say who may do what, if they are not those of the last time. Whether they were not."""
    with database.writing() as session:
        query = sa.select(AuditEntry.body).where(AuditEntry.action == SETTINGS_CHANGED)
        last = session.execute(query.order_by(AuditEntry.seq.desc()).limit(1)).scalar()
        if last is not None and json.loads(last)["request"] == dict(policy):
            return False
        audit.append(session, action=SETTINGS_CHANGED, actor=by, via="service", subject=None, request=dict(policy))
        return True
