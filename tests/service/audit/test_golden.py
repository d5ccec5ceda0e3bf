"""The bytes of version 1 can never drift: entries written years ago must verify with tomorrow's code.

golden.jsonl was written by hand from docs/audit.md (canonical bodies typed out, hashes from hashlib); it is never
regenerated. If this test fails, the code is wrong.
"""

from __future__ import annotations

import datetime
import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from service.audit import chain, service
from service.audit.models import AuditEntry, AuditHead
from service.database import Database
from tests.support.audit_verifier import verify
from tests.support.databases import on_both_databases

GOLDEN = [json.loads(line) for line in (Path(__file__).parent / "golden.jsonl").read_text().splitlines()]


@on_both_databases
def test_appending_writes_the_golden_bytes(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for golden in GOLDEN:
        event: dict[str, Any] = dict(golden["append"])
        salt = event.pop("salt")
        if salt:
            monkeypatch.setattr(service.secrets, "token_bytes", lambda size, salt=salt: bytes.fromhex(salt))
        event["actor"] = SimpleNamespace(**event["actor"])
        event["event_id"] = uuid.UUID(event["event_id"])
        event["at"] = datetime.datetime.fromisoformat(event["at"])
        with database.writing() as session:
            receipt = service.append(session, **event)
        assert receipt == (golden["seq"], golden["leaf"])

    with database.reading() as session:
        written = session.execute(sa.select(AuditEntry).order_by(AuditEntry.seq)).scalars().all()
        head = session.execute(sa.select(AuditHead)).scalar_one()
    assert [(e.seq, e.body, e.prev.hex(), e.hash.hex()) for e in written] == [
        (g["seq"], g["body"], g["prev"], g["hash"]) for g in GOLDEN
    ]
    assert (head.size, head.head.hex()) == (3, GOLDEN[-1]["hash"])


def test_leaf_and_chain_hash_are_the_golden_ones() -> None:
    for golden in GOLDEN:
        leaf = chain.leaf_hash(golden["body"].encode())
        assert leaf.hex() == golden["leaf"]
        assert chain.chain_hash(golden["seq"], bytes.fromhex(golden["prev"]), leaf).hex() == golden["hash"]


def test_the_golden_log_verifies() -> None:
    rows = [(g["seq"], g["body"], bytes.fromhex(g["prev"]), bytes.fromhex(g["hash"])) for g in GOLDEN]
    assert verify(rows, 3, rows[-1][3]) is None


@pytest.mark.parametrize("missing", ["via", "outcome"])
def test_an_event_with_other_members_is_refused(missing: str) -> None:
    event = {name: None for name in chain.MEMBERS if name not in ("seq", missing)}
    with pytest.raises(ValueError, match=missing):
        chain.Draft(event)
    with pytest.raises(ValueError, match="reason"):
        chain.Draft({**event, missing: None, "reason": "more"})
