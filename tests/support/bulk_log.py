"""A long log in seconds: the bytes that appending writes, without its transactions.

The real path takes about a millisecond an entry; a million of them would take twenty minutes.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import islice
from typing import Any

import sqlalchemy as sa

from service.audit import chain
from service.audit.models import AuditEntry, AuditHead
from service.audit.service import LOG, timestamp
from service.database import Database
from service.ids import uuid7

AT_ONCE = 5_000
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
PEOPLE, RARE_EVERY = 40, 10_000

REQUEST = {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100", "tp": 8, "pp": 4, "dp": 2}
RESULT = {
    "answer_sha256": "ab" * 32, "model": "llama-3.1-70b", "parameters": 70_553_706_496, "gpu": "h100-sxm-80gb",
    "gpus": 64, "peak_bytes": 61_203_283_968, "headroom_bytes": 19_327_352_832, "verdict": "fits",
    "layout": {"tp": 8, "sp": True, "pp": 4, "vpp": 1, "cp": 1, "ep": 1, "dp": 2, "shard": "parameters",
               "recompute": "none", "micro_batch": 2, "gradient_accumulation": 16},
}  # fmt: skip


def fill(database: Database, count: int) -> None:
    """Put `count` entries into an empty log, a second apart, by PEOPLE people; every RARE_EVERYth is a token's."""
    rows = _rows(count)
    table = AuditEntry.__table__
    with database.writing() as session:
        while batch := list(islice(rows, AT_ONCE)):
            session.execute(sa.insert(table), batch)
        last = batch_last(session)
        session.execute(sa.update(AuditHead.__table__).where(AuditHead.log == LOG).values(size=count, head=last))
        if session.connection().dialect.name == "postgresql":
            session.execute(sa.text("ANALYZE audit_entry"))


def batch_last(session: Any) -> bytes:
    """The hash of the last entry."""
    return bytes(session.execute(sa.select(AuditEntry.hash).order_by(AuditEntry.seq.desc()).limit(1)).scalar_one())


def _rows(count: int) -> Iterator[dict[str, Any]]:
    previous = chain.GENESIS
    for seq in range(1, count + 1):
        at = START + datetime.timedelta(seconds=seq)
        person, id = f"U{seq % PEOPLE:03}", str(uuid7(at_ns=int(at.timestamp() * 1e9)))
        action = "token.created" if seq % RARE_EVERY == 0 else "sizing.created"
        draft = chain.Draft(
            {
                "v": 1, "log": LOG, "id": id, "at": timestamp(at), "via": "slack", "action": action, "outcome": "ok",
                "actor": {"kind": "slack", "id": person, "team": "T012"}, "subject": f"sz_{seq:026}",
                "request": REQUEST, "result": RESULT, "engine": "0.1.0", "catalog": "cd" * 32, "request_id": f"r-{seq}",
            }
        )  # fmt: skip
        body = draft.body(seq)
        link = chain.chain_hash(seq, previous, chain.leaf_hash(body))
        yield {
            "seq": seq, "event_id": id, "body": body.decode(), "prev": previous, "hash": link, "occurred_at": at,
            "actor": f"slack:T012/{person}", "action": action, "subject": f"sz_{seq:026}",
        }  # fmt: skip
        previous = link
