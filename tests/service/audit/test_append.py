"""Appending: one event in, one entry at the end of the chain, with the receipt that proves it."""

from __future__ import annotations

import datetime
import hashlib
import json
import uuid
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from service.audit.models import AuditEntry, AuditHead, AuditText
from service.audit.service import Receipt, append
from service.database import Database
from tests.support.audit_verifier import canonical, verify
from tests.support.databases import on_both_databases

pytestmark = on_both_databases

SLACK_USER = SimpleNamespace(kind="slack", id="U345", team="T012")
BYSTANDER = SimpleNamespace(kind="address", id="127.0.0.1", team=None)


def append_one(database: Database, **more: object) -> Receipt:
    with database.writing() as session:
        return append(
            session,
            **{"action": "sizing.created", "actor": SLACK_USER, "via": "slack", "subject": "sz_1", **more},  # type: ignore[arg-type]
        )


def the_log(database: Database) -> tuple[list[tuple[int, str, bytes, bytes]], int, bytes]:
    with database.reading() as session:
        entries = session.execute(
            sa.select(AuditEntry.seq, AuditEntry.body, AuditEntry.prev, AuditEntry.hash).order_by(AuditEntry.seq)
        ).all()
        size, head = session.execute(sa.select(AuditHead.size, AuditHead.head)).one()
    return [tuple(entry) for entry in entries], size, head


def test_entries_follow_each_other_from_one_and_a_stranger_can_verify_them(database: Database) -> None:
    receipts = [append_one(database, subject=f"sz_{number}") for number in range(5)]

    rows, size, head = the_log(database)
    assert [receipt.seq for receipt in receipts] == [1, 2, 3, 4, 5]
    assert verify(rows, size, head) is None
    assert [hashlib.sha256(b"\0" + body.encode()).hexdigest() for _, body, _, _ in rows] == [r.leaf for r in receipts]


def test_the_body_has_every_member_in_canonical_form(database: Database) -> None:
    at = datetime.datetime(2026, 11, 30, 21, 5, 6, 7, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    append_one(
        database,
        at=at,
        event_id=uuid.UUID("01938000-0000-7000-8000-000000000000"),
        request={"model": "70B", "micro_batch": 2},
        result={"gpus": 64},
        engine="0.1.0",
        catalog="ab" * 32,
        request_id="r-1",
    )
    [(_, body, _, _)], _, _ = the_log(database)
    assert json.loads(body) == {
        "v": 1,
        "log": "main",
        "seq": 1,
        "id": "01938000-0000-7000-8000-000000000000",
        "at": "2026-11-30T20:05:06.000007Z",
        "actor": {"kind": "slack", "id": "U345", "team": "T012"},
        "via": "slack",
        "action": "sizing.created",
        "subject": "sz_1",
        "outcome": "ok",
        "request": {"model": "70B", "micro_batch": 2},
        "result": {"gpus": 64},
        "engine": "0.1.0",
        "catalog": "ab" * 32,
        "request_id": "r-1",
    }
    assert body == canonical(json.loads(body))


def test_fractions_stand_as_rfc_8785_writes_them(database: Database) -> None:
    append_one(database, request={"margin": 0.05, "lora_dropout": 0.1, "x": 1.0, "small": 1e-7, "large": 1e21})
    [(_, body, _, _)], _, _ = the_log(database)
    # ECMAScript's Number::toString: no ".0", an exponent below 1e-6 and from 1e21 on.
    assert '"request":{"large":1e+21,"lora_dropout":0.1,"margin":0.05,"small":1e-7,"x":1}' in body


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53 + 1, "\ud800"])
def test_what_has_no_canonical_form_is_refused_and_takes_no_number(database: Database, value: object) -> None:
    with pytest.raises(ValueError):
        append_one(database, request={"x": value})
    assert append_one(database).seq == 1


def test_a_transaction_that_fails_gives_its_number_back(database: Database) -> None:
    append_one(database)
    with pytest.raises(ZeroDivisionError), database.writing() as session:
        append(session, action="sizing.created", actor=BYSTANDER, via="api", subject="sz_lost")
        raise ZeroDivisionError
    assert append_one(database).seq == 2
    assert verify(*the_log(database)) is None


def test_free_text_is_kept_aside_and_the_entry_has_only_its_salted_digest(database: Database) -> None:
    append_one(database, request={"model": "70B"}, free_text={"command": "70B for Ann's secret project"})

    [(_, body, _, _)], _, _ = the_log(database)
    with database.reading() as session:
        salt, text = session.execute(sa.select(AuditText.salt, AuditText.text)).one()
    assert "secret" not in body
    assert json.loads(body)["request"] == {
        "model": "70B",
        "command_sha256": hashlib.sha256(salt + text.encode()).hexdigest(),
    }
    assert len(salt) == 32


def test_erasing_free_text_leaves_the_chain_whole(database: Database) -> None:
    append_one(database, free_text={"command": "70B please forget me"})
    append_one(database)
    with database.writing() as session:
        session.execute(sa.delete(AuditText))
    assert verify(*the_log(database)) is None


def test_search_copies_are_those_of_the_body(database: Database) -> None:
    at = datetime.datetime(2026, 11, 30, 20, 0, 0, 5, tzinfo=datetime.UTC)
    append_one(database, at=at)
    append_one(database, actor=BYSTANDER, action="sizing.denied", subject=None, outcome="refused")
    with database.reading() as session:
        copies = session.execute(
            sa.select(AuditEntry.occurred_at, AuditEntry.actor, AuditEntry.action, AuditEntry.subject).order_by(
                AuditEntry.seq
            )
        ).all()
    assert tuple(copies[0]) == (at, "slack:T012/U345", "sizing.created", "sz_1")
    assert tuple(copies[1])[1:] == ("address:127.0.0.1", "sizing.denied", None)


def test_a_clock_that_goes_backwards_does_not_matter(database: Database) -> None:
    append_one(database, at=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC))
    append_one(database, at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    assert verify(*the_log(database)) is None
