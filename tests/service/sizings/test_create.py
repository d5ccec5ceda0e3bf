"""POST /api/v1/sizings: one answer, one row, one audit entry; and the same bytes whenever it is read."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from service.catalog.facts import packaged
from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts, entries

pytestmark = on_both_databases

FLAT = {"model": "llama-3.1-8b", "sequence_length": 4096, "micro_batch": 1, "gpu": "H100", "tp": 8, "margin": 0.05}
COMMAND = {"command": "8B seq=4k tp=8 gpu=H100"}
ON_BEHALF = {"Trainmem-On-Behalf-Of": "slack:T012/U345", "X-Request-Id": "press-1"}


def test_a_sizing_is_answered_recorded_and_read_back_unchanged(client: FlaskClient, record: Database) -> None:
    made = client.post("/api/v1/sizings", json=FLAT)

    assert made.status_code == 201
    sizing = made.get_json()
    assert re.fullmatch(r"sz_[0-9a-hjkmnp-tv-z]{26}", sizing["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", sizing["recorded_at"])
    assert sizing["request"] == FLAT
    assert sizing["model"]["parameters"] == 8_030_261_248  # Llama 3.1 8B, as published
    assert sizing["per_gpu"]["gpus"] == 8
    assert sizing["catalog_digest"] == packaged().digest
    assert made.headers["Location"] == f"/api/v1/sizings/{sizing['id']}"

    again = client.get(made.headers["Location"])
    assert again.status_code == 200
    assert again.data == made.data
    assert counts(record) == {"sizing": 1, "audit_entry": 2, "audit_text": 0, "idempotency_key": 0}
    assert chain_fault(record) is None


def test_the_entry_says_who_asked_what_and_what_was_answered(client: FlaskClient, record: Database) -> None:
    sizing = client.post("/api/v1/sizings", json=FLAT, headers=ON_BEHALF).get_json()

    entry = entries(record)[-1]
    with record.reading() as session:
        body = session.execute(sa.text("SELECT body FROM audit_entry WHERE seq = 2")).scalar_one()
        answer = session.execute(sa.text("SELECT answer FROM sizing")).scalar_one()
    assert sizing["audit"] == {"seq": 2, "leaf": hashlib.sha256(b"\0" + body.encode()).hexdigest()}
    assert (entry["action"], entry["outcome"], entry["subject"]) == ("sizing.created", "ok", sizing["id"])
    assert entry["actor"] == {"kind": "slack", "id": "U345", "team": "T012"}
    assert (entry["via"], entry["request_id"], entry["at"]) == ("slack", "press-1", sizing["recorded_at"])
    assert entry["request"] == FLAT
    assert (entry["engine"], entry["catalog"]) == (sizing["engine_version"], sizing["catalog_digest"])
    assert entry["result"]["gpus"] == 8
    assert entry["result"]["peak_bytes"] == sizing["per_gpu"]["peak"]["device_bytes"]
    assert entry["result"]["verdict"] == sizing["verdict"]["code"]
    assert entry["result"]["answer_sha256"] == hashlib.sha256(answer.encode()).hexdigest()


def test_a_typed_command_is_free_text_and_stands_only_where_it_can_be_erased(
    client: FlaskClient, record: Database
) -> None:
    made = client.post("/api/v1/sizings", json=COMMAND)

    assert made.get_json()["request"] == COMMAND
    with record.reading() as session:
        body, answer, request = session.execute(
            sa.text("SELECT body, answer, request FROM sizing JOIN audit_entry USING (event_id)")
        ).one()
        salt, text = session.execute(sa.text("SELECT salt, text FROM audit_text")).one()
    assert text == COMMAND["command"]
    assert not any(COMMAND["command"] in stored for stored in (body, answer, request))
    meant = {"model": "8B", "sequence_length": 4096, "tp": 8, "gpu": "H100"}
    assert json.loads(request) == meant
    digest = hashlib.sha256(bytes(salt) + text.encode()).hexdigest()
    assert json.loads(body)["request"] == {**meant, "command_sha256": digest}


def test_an_erased_command_leaves_what_it_meant(client: FlaskClient, record: Database) -> None:
    made = client.post("/api/v1/sizings", json=COMMAND).get_json()
    with record.writing() as session:
        session.execute(sa.text("DELETE FROM audit_text"))

    read = client.get(f"/api/v1/sizings/{made['id']}").get_json()
    assert read == {**made, "request": {"model": "8B", "sequence_length": 4096, "tp": 8, "gpu": "H100"}}
    assert chain_fault(record) is None


def test_a_run_that_cannot_fit_is_an_answer(client: FlaskClient) -> None:
    made = client.post("/api/v1/sizings", json={"model": "llama-3.1-405b", "tp": 8})
    assert made.status_code == 201
    assert made.get_json()["verdict"]["code"] == "does_not_fit"


def test_a_recorded_sizing_may_be_kept_for_ever(client: FlaskClient) -> None:
    made = client.post("/api/v1/sizings", json=FLAT)
    first = client.get(made.headers["Location"])

    assert first.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert first.headers["ETag"] == made.headers["ETag"]
    assert not first.headers["ETag"].startswith("W/")
    kept = client.get(made.headers["Location"], headers={"If-None-Match": first.headers["ETag"]})
    assert (kept.status_code, kept.data) == (304, b"")


@pytest.mark.parametrize("id", ["sz_00000000000000000000000000", "1", "sz_%00", "x" * 500, "%F0%9F%92%A9", "..%2f"])
def test_an_unknown_id_is_not_found(client: FlaskClient, id: str) -> None:
    missing = client.get(f"/api/v1/sizings/{id}")
    assert missing.status_code == 404
    assert missing.content_type == "application/problem+json"


def test_foreign_numbers_beyond_what_json_readers_agree_on_are_recorded_as_doubles(
    client: FlaskClient, record: Database
) -> None:
    config = {
        "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 2, "num_attention_heads": 16,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 4096,
        "tie_word_embeddings": False, "rope_theta": 500000.0, "rms_norm_eps": 1e-05, "made_up": 2**53 + 1,
    }  # fmt: skip
    made = client.post("/api/v1/sizings", json={"model": {"hf_config": config}, "tp": 1})
    assert made.status_code == 201, made.text
    assert entries(record)[-1]["request"]["model"]["hf_config"]["made_up"] == 2**53
    assert chain_fault(record) is None
