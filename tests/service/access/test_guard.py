"""The door of the service over HTTP: scopes, refusals in the audit, rate limits, and no view that forgot to say."""

from __future__ import annotations

import time

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.access import guard, tokens
from service.access.service import Caller
from service.database import Database
from service.settings import Settings
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts, entries

ELSEWHERE = {"REMOTE_ADDR": "192.0.2.7"}
QUESTION = {"model": "gpt2", "tp": 1}


@pytest.fixture
def bearer(record: Database):  # type: ignore[no-untyped-def]
    """Makes the header of a new token."""

    def make(*scopes: str, **more: object) -> dict[str, str]:
        with record.writing() as session:
            by = Caller("operator", "ann")
            _, secret = tokens.create(session, name="test", scopes=scopes, by=by, **more)  # type: ignore[arg-type]
        return {"Authorization": f"Bearer {secret}"}

    return make


@on_both_databases
def test_without_a_token_a_stranger_records_nothing_but_the_refusal(client: FlaskClient, record: Database) -> None:
    refused = client.post(
        "/api/v1/sizings",
        json=QUESTION,
        headers={"X-Request-Id": "r-7"},
        environ_base=ELSEWHERE,
    )
    assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert refused.content_type == "application/problem+json"
    assert counts(record)["sizing"] == 0
    entry = entries(record)[-1]
    assert (entry["action"], entry["outcome"], entry["subject"]) == ("sizing.denied", "refused", None)
    assert entry["actor"] == {"kind": "address", "id": "192.0.2.7", "team": None}
    assert entry["request"] == {"method": "POST", "route": "/api/v1/sizings"}
    assert entry["result"]["status"] == 401 and entry["request_id"] == "r-7"
    assert chain_fault(record) is None


@on_both_databases
def test_a_token_with_the_scope_asks_from_anywhere(client: FlaskClient, record: Database, bearer) -> None:  # type: ignore[no-untyped-def]
    made = client.post("/api/v1/sizings", json=QUESTION, headers=bearer("size"), environ_base=ELSEWHERE)
    assert made.status_code == 201
    actor = entries(record)[-1]["actor"]
    assert (actor["kind"], actor["id"]) == ("token", "test") and actor["token"].startswith("tok_")
    again = client.get(made.headers["Location"], headers=bearer("size"), environ_base=ELSEWHERE)
    assert again.get_json() == made.get_json()


def test_a_token_without_the_scope_is_refused_by_name(client: FlaskClient, record: Database, bearer) -> None:  # type: ignore[no-untyped-def]
    refused = client.get("/api/v1/sizings", headers=bearer("size"), environ_base=ELSEWHERE)
    assert refused.status_code == 403
    assert refused.get_json()["detail"] == "This takes the scope audit:read, which token:test does not have."
    assert entries(record)[-1]["action"] == "access.denied"


def test_the_person_whom_a_token_speaks_for_stands_in_the_record(client: FlaskClient, record: Database, bearer) -> None:  # type: ignore[no-untyped-def]
    headers = {"Trainmem-On-Behalf-Of": "slack:T012/U345", "Trainmem-Channel": "C678"}
    headers |= bearer("size", for_others=True)
    assert client.post("/api/v1/sizings", json=QUESTION, headers=headers, environ_base=ELSEWHERE).status_code == 201
    entry = entries(record)[-1]
    token = entry["actor"].pop("token")
    assert entry["actor"] == {"kind": "slack", "id": "U345", "team": "T012", "channel": "C678"}
    assert token.startswith("tok_") and entry["via"] == "slack"


def test_a_revoked_token_is_refused_within_a_second(app: Flask, client: FlaskClient, record: Database, bearer) -> None:  # type: ignore[no-untyped-def]
    headers = bearer("audit:read")
    assert client.get("/api/v1/sizings", headers=headers).status_code == 200
    with record.writing() as session:
        tokens.revoke(session, which="test", by=Caller("operator", "ann"))
    deadline = time.monotonic() + guard.CHECK_EVERY_S + 1
    while (status := client.get("/api/v1/sizings", headers=headers).status_code) == 200:
        assert time.monotonic() < deadline
    assert status == 401
    assert "revoked" in entries(record)[-1]["result"]["reason"]


def test_what_is_public_needs_no_token(client: FlaskClient) -> None:
    for path in ("/api/v1/gpus", "/api/v1/models/gpt2", "/api/v1/estimate?model=gpt2&tp=1", "/", "/docs", "/healthz"):
        assert client.get(path, environ_base=ELSEWHERE).status_code == 200, path


def test_a_bad_token_is_refused_where_none_is_needed(client: FlaskClient) -> None:
    assert client.get("/api/v1/gpus", headers={"Authorization": "Bearer tmk_nonsense"}).status_code == 401


def test_every_operation_of_the_api_says_what_it_takes(app: Flask) -> None:
    silent = [
        rule.rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/")
        and "openapi" not in rule.rule
        and getattr(app.view_functions[rule.endpoint], "access", None) is None
    ]
    assert silent == []


class TestLimits:
    @pytest.fixture
    def settings(self, service_url: str) -> Settings:
        return Settings(database_url=service_url, log_level="error", rate_limit=3, anonymous_rate_limit=2)

    def test_a_token_that_asks_too_often_is_told_when_to_come_back(self, client: FlaskClient, bearer) -> None:  # type: ignore[no-untyped-def]
        headers = bearer("audit:read")
        answers = [client.get("/api/v1/sizings", headers=headers) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 20
        assert client.get("/api/v1/sizings", headers=bearer("audit:read")).status_code == 200

    def test_a_stranger_cannot_fill_the_audit_with_refusals(self, client: FlaskClient, record: Database) -> None:
        before = len(entries(record))
        answers = [client.post("/api/v1/sizings", json=QUESTION, environ_base={"REMOTE_ADDR": "192.0.2.8"})
                   for _ in range(5)]  # fmt: skip
        assert [answer.status_code for answer in answers] == [401, 401, 429, 429, 429]
        assert len(entries(record)) == before + 2

    def test_strangers_may_ask_what_is_public_only_so_often(self, client: FlaskClient) -> None:
        asked = [client.get("/api/v1/gpus", environ_base={"REMOTE_ADDR": "192.0.2.9"}) for _ in range(3)]
        assert [answer.status_code for answer in asked] == [200, 200, 429]

    def test_who_is_on_this_machine_is_not_counted(self, client: FlaskClient) -> None:
        assert {client.get("/api/v1/gpus").status_code for _ in range(8)} == {200}
