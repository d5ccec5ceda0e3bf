"""The audit over HTTP: entries by filter and page, proofs that a stranger can check, export that verifies."""

from __future__ import annotations

import csv
import hashlib
import json

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from service.audit import checkpoints
from service.audit.export import read
from service.audit.merkle import verify_consistency, verify_inclusion
from service.audit.notes import Checkpoint, SigningKey, parse
from service.audit.service import append
from service.audit.verification import Verifier
from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import entries
from tests.support.tampering import SOMEBODY, append_many

KEY = SigningKey.generate("log")


@pytest.fixture
def log(record: Database) -> Database:
    """Entry 1 is the catalogue's, 2 to 21 are Slack's, 22 has free text."""
    append_many(record, 20)
    with record.writing() as session:
        append(session, action="decision.made", actor=SOMEBODY, via="slack", subject="sz_3",
               free_text={"reason": "the budget"})  # fmt: skip
    return record


@on_both_databases
def test_entries_are_found_page_after_page(client: FlaskClient, log: Database) -> None:
    numbers: list[int] = []
    query = {"actor": "slack:T012/U345", "action": "sizing.created", "limit": "7"}
    while True:
        page = client.get("/api/v1/audit/entries", query_string=query).get_json()
        numbers += [item["seq"] for item in page["items"]]
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    assert numbers == list(range(21, 1, -1))


@on_both_databases
def test_an_entry_stands_byte_for_byte_as_it_was_hashed(client: FlaskClient, log: Database) -> None:
    text = client.get("/api/v1/audit/entries/5").get_data(as_text=True)
    body = text.partition('"event":')[2].rpartition(',"texts":')[0]
    assert hashlib.sha256(b"\0" + body.encode()).hexdigest() == json.loads(text)["leaf"]
    found = client.get("/api/v1/audit/entries?subject=sz_3").get_json()["items"]
    assert [item["event"]["action"] for item in found] == ["decision.made", "sizing.created"]


def test_free_text_is_shown_with_the_salt_that_proves_it(client: FlaskClient, log: Database) -> None:
    entry = client.get("/api/v1/audit/entries/22").get_json()
    kept = entry["texts"]["reason"]
    digest = hashlib.sha256(bytes.fromhex(kept["salt"]) + kept["text"].encode()).hexdigest()
    assert entry["event"]["request"]["reason_sha256"] == digest and kept["text"] == "the budget"


@on_both_databases
def test_entries_of_a_time_are_those_between(client: FlaskClient, log: Database) -> None:
    at = [entry["at"] for entry in entries(log)]
    query = {"since": at[4], "until": at[9]}
    found = client.get("/api/v1/audit/entries", query_string=query).get_json()["items"]
    assert [item["seq"] for item in found] == [9, 8, 7, 6, 5] or at[3] == at[4] or at[8] == at[9]
    assert client.get("/api/v1/audit/entries?since=2999-01-01").get_json()["items"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("entries/999", 404), ("entries/0", 404), ("entries/99999999999999999999", 404), ("entries/x", 404),
        ("entries?limit=0", 422), ("entries?cursor=x", 422), ("entries?acter=x", 422), ("entries?since=soon", 422),
        ("entries/5/proof?size=9", 404), ("entries/999/proof", 404), ("entries/5/proof?size=x", 422),
        ("consistency", 422), ("consistency?first=3&second=2", 422), ("consistency?first=2&second=21", 404),
        ("export?format=xml", 422), ("export?after=-1", 422),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_told(client: FlaskClient, log: Database, path: str, status: int) -> None:
    checkpoints.make(log, KEY)
    answer = client.get(f"/api/v1/audit/{path}")
    assert answer.status_code == status and answer.content_type == "application/problem+json"


def test_before_the_first_checkpoint_there_is_nothing_to_prove(client: FlaskClient) -> None:
    for path in ("checkpoint", "entries/1/proof"):
        answer = client.get(f"/api/v1/audit/{path}")
        assert answer.status_code == 404 and "There is no checkpoint yet" in answer.get_json()["detail"]


@on_both_databases
def test_a_receipt_can_be_proven_to_a_stranger(client: FlaskClient, record: Database) -> None:
    made = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}).get_json()
    append_many(record, 5)
    checkpoints.make(record, KEY)
    append_many(record, 300)
    checkpoints.make(record, KEY)

    receipt = made["audit"]
    for query in ("", "?size=7"):
        proof = client.get(f"/api/v1/audit/entries/{receipt['seq']}/proof{query}").get_json()
        note = parse(proof["note"])
        stated = Checkpoint.parse(note.text)
        assert note.signed_by([KEY.verifier]) and proof["leaf"] == receipt["leaf"]
        hashes = [bytes.fromhex(text) for text in proof["hashes"]]
        leaf = bytes.fromhex(receipt["leaf"])
        assert verify_inclusion(receipt["seq"] - 1, stated.size, leaf, hashes, stated.root)

    shown = client.get("/api/v1/audit/consistency?first=7&second=307").get_json()
    old, new, *path = map(bytes.fromhex, [shown["first_root"], shown["second_root"], *shown["hashes"]])
    assert verify_consistency(7, 307, path, old, new)


def test_the_checkpoint_is_a_note_for_witnesses_and_json_for_programs(client: FlaskClient, log: Database) -> None:
    note = str(checkpoints.make(log, KEY))
    assert client.get("/api/v1/audit/checkpoint").get_json()["note"] == note
    plain = client.get("/api/v1/audit/checkpoint", headers={"Accept": "text/plain"})
    assert plain.get_data(as_text=True) == note and plain.mimetype == "text/plain"


@on_both_databases
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_export_verifies_and_can_be_continued(client: FlaskClient, log: Database, format: str) -> None:
    first = client.get(f"/api/v1/audit/export?format={format}")
    text = first.get_data(as_text=True)
    assert first.headers["Content-Disposition"] == f'attachment; filename="trainmem-audit-1-22.{format}"'
    rest = client.get(f"/api/v1/audit/export?format={format}&after=22").get_data(as_text=True)
    verifier = Verifier()
    for rows in read((text + rest).splitlines(keepends=True)):
        verifier.feed(rows)
    assert verifier.end() == [] and verifier.seq == 23
    exported = entries(log)[-1]
    assert (exported["action"], exported["request"]) == ("audit.exported", {"after": 22, "format": format, "upto": 23})


def test_a_spreadsheet_gets_what_it_sorts_by(client: FlaskClient, log: Database) -> None:
    rows = list(csv.DictReader(client.get("/api/v1/audit/export?format=csv").get_data(as_text=True).splitlines()))
    assert len(rows) == 22
    assert rows[1]["actor"] == "slack:T012/U345" and rows[1]["subject"] == "sz_1" and rows[0]["subject"] == ""


def test_an_entry_that_cannot_be_written_is_503_and_nothing_happened(
    app: Flask, client: FlaskClient, record: Database
) -> None:
    with record.writing() as session:
        session.execute(
            sa.text("CREATE TRIGGER full BEFORE INSERT ON audit_entry BEGIN SELECT RAISE(ABORT, 'full'); END")
        )
    refused = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1})
    assert refused.status_code == 503 and int(refused.headers["Retry-After"]) > 0
    with record.reading() as session:
        assert session.execute(sa.text("SELECT count(*) FROM sizing")).scalar() == 0
        assert session.execute(sa.text("SELECT size FROM audit_head")).scalar() == 1
