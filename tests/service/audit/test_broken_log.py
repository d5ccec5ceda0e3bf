"""A log that is found broken when the service starts: loud, still read, not written until it is acknowledged."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from service.audit import faults, startup
from service.database import Database
from service.door import Caller
from tests.support.databases import on_both_databases
from tests.support.record import entries
from tests.support.tampering import append_many, edit, edit_a_body, without_triggers

OPERATOR = Caller("operator", "ann")
QUESTION = {"model": "gpt2", "tp": 1}


@on_both_databases
def test_a_broken_log_stops_writing_until_somebody_acknowledges(
    client: FlaskClient, record: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    made = client.post("/api/v1/sizings", json=QUESTION)
    append_many(record, 8)
    assert "The audit is whole: 10 entries" in startup.verify(record)
    without_triggers(record)
    with record.writing() as session:
        edit_a_body(session)

    assert "NOT what was written" in startup.verify(record)
    assert "AUDIT FAULT: entry 5 was changed" in capsys.readouterr().err
    ready = client.get("/readyz")
    assert ready.status_code == 503 and "entry 5 was changed" in ready.get_json()["checks"]["audit"]
    assert client.get(made.headers["Location"]).status_code == 200
    assert client.get("/api/v1/audit/entries").status_code == 200
    refused = client.post("/api/v1/sizings", json=QUESTION)
    assert refused.status_code == 503 and refused.headers["Retry-After"] == "60"
    assert "administrator" in refused.get_json()["detail"]

    assert [fault.seq for fault in faults.acknowledge(record, by=OPERATOR, reason="a disk error")] == [5]
    entry = entries(record)[-1]
    assert (entry["action"], entry["actor"]["id"]) == ("audit.acknowledged", "ann")
    assert entry["result"]["faults"][0]["seq"] == 5
    assert client.get("/readyz").status_code == 200
    assert client.post("/api/v1/sizings", json=QUESTION).status_code == 201
    assert "The audit is whole" in startup.verify(record)  # what is known does not stop it again


@on_both_databases
def test_another_change_of_the_same_entry_is_another_fault(record: Database) -> None:
    append_many(record, 8)
    without_triggers(record)
    with record.writing() as session:
        edit_a_body(session)
    startup.verify(record)
    faults.acknowledge(record, by=OPERATOR, reason="known")
    with record.writing() as session:
        edit(session, 5, '"7B"', '"8B"')
    assert "NOT what was written" in startup.verify(record)


def test_settings_are_recorded_when_they_change(record: Database) -> None:
    before = len(entries(record))
    policy = {"TRAINMEM_DECIDERS": "user:ann"}
    assert startup.record_settings(record, policy=policy, by=OPERATOR)
    assert not startup.record_settings(record, policy=policy, by=OPERATOR)
    assert startup.record_settings(record, policy={"TRAINMEM_DECIDERS": "user:eve"}, by=OPERATOR)
    assert [entry["request"] for entry in entries(record)[before:]] == [policy, {"TRAINMEM_DECIDERS": "user:eve"}]
