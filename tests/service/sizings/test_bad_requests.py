"""What cannot be answered is refused with a pointer to every wrong key at once, and leaves no trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.database import Database
from tests.support.record import counts

NOTHING = {"sizing": 0, "audit_entry": 1, "audit_text": 0, "idempotency_key": 0}  # entry 1: the catalogue was loaded
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance", "request_id", "errors"}
ERROR_MEMBERS = {"pointer", "detail", "given", "allowed", "suggestions"}


def refused(client: FlaskClient, record: Database, status: int, **sent: Any) -> dict[str, Any]:
    """Send, check that it was refused with a whole problem document and that nothing was written."""
    answer = client.post("/api/v1/sizings", headers={"Idempotency-Key": "k"}, **sent)
    assert answer.status_code == status, answer.text
    assert answer.content_type == "application/problem+json"
    problem = answer.get_json()
    assert set(problem) == PROBLEM_MEMBERS
    assert (problem["status"], problem["instance"]) == (status, "/api/v1/sizings")
    assert problem["request_id"] == answer.headers["X-Request-Id"]
    assert all(set(error) >= ERROR_MEMBERS for error in problem["errors"])
    assert counts(record) == NOTHING
    return problem


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/model"]),
        ({"model": "70B", "micro_btch": 2}, ["/micro_btch"]),
        ({"model": "70B", "sequence_length": "8k"}, ["/sequence_length"]),
        ({"model": "70B", "tp": 2.5}, ["/tp"]),
        ({"model": "70B", "tp": True}, ["/tp"]),
        ({"model": "70B", "tp": -8}, ["/tp"]),
        ({"model": "70B", "micro_batch": 0}, ["/micro_batch"]),
        ({"model": "70B", "gpus": 10**30}, ["/gpus"]),
        ({"model": "70B", "gpus": 10**400}, ["/gpus"]),
        ({"model": {"hf_config": {"x": 10**400}}}, ["/model/hf_config/x"]),
        ({"model": "70B", "precision": "int3"}, ["/precision"]),
        ({"model": "70B", "gpu": "H1000"}, ["/gpu"]),
        ({"model": "no-such-model"}, ["/model"]),
        ({"model": "70B", "tp": 3}, ["/tp"]),
        ({"model": "70B", "tp": 8, "dp": 2, "gpus": 12}, ["/gpus"]),
        ({"command": "70B gpu=H1000"}, ["/gpu"]),
        ({"command": "70B", "tp": 2}, ["/tp"]),
        ({"command": 7}, ["/command"]),
        ({"tp": "3", "margin": 10, "nonsense": 1}, ["/margin", "/model", "/nonsense", "/tp"]),
    ],
)
def test_every_wrong_key_is_pointed_at(
    client: FlaskClient, record: Database, body: dict[str, Any], pointers: list[str]
) -> None:
    problem = refused(client, record, 422, data=json.dumps(body), content_type="application/json")
    assert sorted({error["pointer"] for error in problem["errors"]}) == pointers


@pytest.mark.parametrize("body", ["[]", '"70B"', "7", "null", "true"])
def test_json_that_is_no_object_is_refused(client: FlaskClient, record: Database, body: str) -> None:
    problem = refused(client, record, 422, data=body, content_type="application/json")
    assert "object" in problem["errors"][0]["detail"] + str(problem["errors"][0]["allowed"])


def test_the_nearest_right_spelling_is_suggested(client: FlaskClient, record: Database) -> None:
    problem = refused(client, record, 422, json={"model": "70B", "gpu": "H1000", "optimizer": "adamv"})
    suggestions = {error["pointer"]: error["suggestions"] for error in problem["errors"]}
    assert "adamw" in suggestions["/optimizer"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"model": "70B",}',
        b"model=70B",
        b'{"model": "70B", "margin": NaN}',
        b'{"model": "70B", "margin": -Infinity}',
        b'{"model": "70B", "tp": 2, "tp": 4}',
        b'{"model": "\\ud800"}',
        b'{"model": "a\\u0000b"}',
        b'{"model": "\xff\xfe"}',
        b"[" * 100_000,
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b'{"gpus": ' + b"9" * 5_000 + b"}",
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)
def test_what_is_not_json_is_400(client: FlaskClient, record: Database, body: bytes) -> None:
    refused(client, record, 400, data=body, content_type="application/json")


def test_a_key_that_is_given_twice_is_named(client: FlaskClient, record: Database) -> None:
    problem = refused(client, record, 400, data='{"model": "8B", "tp": 2, "tp": 4}', content_type="application/json")
    assert problem["errors"][0]["pointer"] == "/tp"
    assert problem["errors"][0]["given"] == "2 and 4"


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_another_content_type_is_415(client: FlaskClient, record: Database, content_type: str | None) -> None:
    refused(client, record, 415, data=b'{"model": "8B", "tp": 1}', content_type=content_type)


def test_a_body_over_256_kib_is_413(client: FlaskClient, record: Database) -> None:
    body = json.dumps({"model": {"hf_config": {"x": ["y" * 1000] * 262}}})
    assert len(body) > 256 * 1024
    refused(client, record, 413, data=body, content_type="application/json")


def test_a_body_of_256_kib_is_read(client: FlaskClient, record: Database) -> None:
    body = json.dumps({"model": "70B", "tp": "x"})
    body += " " * (256 * 1024 - len(body))
    refused(client, record, 422, data=body, content_type="application/json")


@pytest.mark.parametrize("header", ["slack", "slack:", ":U1", "Slack:U1", "slack:T1/U1/X", "slack:U 1", "a" * 300])
def test_on_behalf_of_nobody_is_400(client: FlaskClient, record: Database, header: str) -> None:
    answer = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}, headers={"Trainmem-On-Behalf-Of": header})
    assert answer.status_code == 400
    assert answer.get_json()["errors"][0]["allowed"] == "kind:id or kind:team/id"
    assert counts(record) == NOTHING
