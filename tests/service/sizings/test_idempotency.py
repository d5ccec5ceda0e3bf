"""Idempotency-Key: a request that is sent twice is recorded once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from service.database import Database
from service.settings import Settings
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts

pytestmark = on_both_databases

BODY = {"model": "gpt2", "tp": 1}
KEY = {"Idempotency-Key": "press-1"}


@pytest.fixture
def settings(service_url: str) -> Settings:
    """A service that does not wait long for others."""
    return Settings(database_url=service_url, log_level="error", lock_timeout_s=0.5)


def test_the_same_key_and_body_give_the_recorded_answer_again(client: FlaskClient, record: Database) -> None:
    first = client.post("/api/v1/sizings", json=BODY, headers=KEY)
    second = client.post("/api/v1/sizings", json=dict(reversed(BODY.items())), headers=KEY)

    assert (second.status_code, second.data) == (201, first.data)
    assert second.headers["Location"] == first.headers["Location"]
    assert second.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert counts(record) == {"sizing": 1, "audit_entry": 2, "audit_text": 0, "idempotency_key": 1}


def test_the_same_key_with_another_body_is_refused(client: FlaskClient, record: Database) -> None:
    client.post("/api/v1/sizings", json=BODY, headers=KEY)
    other = client.post("/api/v1/sizings", json={**BODY, "micro_batch": 2}, headers=KEY)
    assert other.status_code == 422
    assert other.get_json()["type"].endswith("#idempotency-key-reused")
    assert counts(record)["sizing"] == 1


def test_keys_belong_to_a_caller(client: FlaskClient, record: Database) -> None:
    for user in ("slack:T1/U1", "slack:T1/U2"):
        made = client.post("/api/v1/sizings", json=BODY, headers={**KEY, "Trainmem-On-Behalf-Of": user})
        assert "Idempotency-Replayed" not in made.headers
    assert counts(record)["sizing"] == 2


def test_a_refused_request_does_not_use_up_its_key(client: FlaskClient) -> None:
    assert client.post("/api/v1/sizings", json={"model": "gpt3000"}, headers=KEY).status_code == 422
    assert client.post("/api/v1/sizings", json=BODY, headers=KEY).status_code == 201


def test_a_key_is_forgotten_after_a_day(client: FlaskClient, record: Database) -> None:
    client.post("/api/v1/sizings", json=BODY, headers=KEY)
    with record.writing() as session:
        session.execute(sa.text("UPDATE idempotency_key SET created_at = '2026-01-01 00:00:00.000000'"))
    later = client.post("/api/v1/sizings", json={**BODY, "micro_batch": 2}, headers=KEY)
    assert (later.status_code, "Idempotency-Replayed" in later.headers) == (201, False)


def test_pressing_twice_at_once_records_once(app: Flask, record: Database) -> None:
    def press(_: int) -> tuple[int, bytes]:
        answer = app.test_client().post("/api/v1/sizings", json=BODY, headers=KEY)
        return answer.status_code, answer.data

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(press, range(8)))

    assert {status for status, _ in answers} == {201}
    assert len({body for _, body in answers}) == 1
    assert counts(record)["sizing"] == 1
    assert chain_fault(record) is None


@pytest.mark.parametrize("key", ["", "a b", "schlüssel", "x" * 201])
def test_a_key_that_cannot_be_one_is_refused(client: FlaskClient, record: Database, key: str) -> None:
    refused = client.post("/api/v1/sizings", json=BODY, headers={"Idempotency-Key": key.encode().decode("latin-1")})
    assert refused.status_code == 400
    assert "Idempotency-Key" in refused.get_json()["detail"]
    assert counts(record)["sizing"] == 0


def test_a_request_whose_twin_is_still_being_recorded_is_told_so(
    client: FlaskClient, record: Database, database_kind: str
) -> None:
    with record.writing() as session:
        session.execute(
            sa.text(
                "INSERT INTO idempotency_key (caller, key, fingerprint, sizing_id, created_at)"
                " VALUES ('address:127.0.0.1', 'press-1', 'x', 'sz_1', CURRENT_TIMESTAMP)"
            )
        )
        answer = client.post("/api/v1/sizings", json=BODY, headers=KEY)
        session.rollback()
    # SQLite has one lock for all writers, so there the twin is any writer that does not end.
    assert answer.status_code == (409 if database_kind == "postgresql" else 503)
    assert int(answer.headers["Retry-After"]) >= 1
