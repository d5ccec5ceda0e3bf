"""Decisions: who may, what they say, in what order they stand, and that all of it is in the record."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from service.access import tokens
from service.database import Database
from service.door import Caller
from service.settings import Settings
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries

SLACK = {"Trainmem-On-Behalf-Of": "slack:T012/U345"}
BOSS = {"Trainmem-On-Behalf-Of": "slack:T012/U999"}
APPROVE = {"decision": "approve"}


@pytest.fixture
def settings(service_url: str) -> Settings:
    deciders = frozenset({"slack:T012/U999", "slack:T012/S777", "slack:T012/U345"})
    return Settings(database_url=service_url, log_level="error", deciders=deciders)


@pytest.fixture
def sizing(client: FlaskClient) -> dict[str, Any]:
    """Asked by slack:T012/U345."""
    made = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}, headers=SLACK)
    found: dict[str, Any] = made.get_json()
    return found


def decide(client: FlaskClient, sizing: dict[str, Any], body: object, headers: dict[str, str] = BOSS, **more: Any):  # type: ignore[no-untyped-def]
    return client.post(f"/api/v1/sizings/{sizing['id']}/decisions", json=body, headers=headers, **more)


@on_both_databases
def test_decisions_stand_in_order_and_are_in_the_audit(
    client: FlaskClient, record: Database, sizing: dict[str, Any]
) -> None:
    bodies = [
        APPROVE,
        {"decision": "override", "gpus_granted": 16, "gpu": "h200", "reason": "the H100s are taken by Ann"},
        {"decision": "withdraw", "reason": "asked again"},
        {"decision": "reject", "reason": "no budget"},
    ]
    made = [decide(client, sizing, body) for body in bodies]
    assert [answer.status_code for answer in made] == [201] * 4
    first, second, third, fourth = (answer.get_json() for answer in made)
    assert (first["gpus_granted"], first["gpu"]) == (sizing["per_gpu"]["gpus"], sizing["gpu"]["id"])
    assert second["gpus_granted"] == 16 and "h200" in second["gpu"].lower() and second["reason"].endswith("Ann")
    assert third["gpus_granted"] is fourth["gpus_granted"] is None
    listed = client.get(f"/api/v1/sizings/{sizing['id']}/decisions").get_json()
    assert listed == {"items": [first, second, third, fourth], "next": None}

    entry = entries(record)[-3]
    assert (entry["action"], entry["subject"]) == ("decision.made", sizing["id"])
    assert entry["actor"] == {"kind": "slack", "id": "U999", "team": "T012"} and entry["via"] == "slack"
    assert entry["result"]["requester"] == "slack:T012/U345" and entry["request"]["gpus_granted"] == 16
    assert "Ann" not in str(entry) and len(entry["request"]["reason_sha256"]) == 64
    assert second["audit"]["seq"] == entry["seq"] and chain_fault(record) is None


@on_both_databases
def test_a_press_that_is_sent_twice_is_one_decision(
    client: FlaskClient, record: Database, sizing: dict[str, Any]
) -> None:
    key = {**BOSS, "Idempotency-Key": "press-1"}
    first = decide(client, sizing, APPROVE, key)
    again = decide(client, sizing, APPROVE, key)
    unkeyed = decide(client, sizing, APPROVE)
    assert [answer.status_code for answer in (first, again, unkeyed)] == [201, 200, 200]
    assert first.get_json() == again.get_json() == unkeyed.get_json()
    assert again.headers["Idempotency-Replayed"] == "true"
    other = decide(client, sizing, {"decision": "reject", "reason": "no"}, key)
    assert other.status_code == 422 and "new key" in other.get_json()["detail"]
    assert [entry["action"] for entry in entries(record)].count("decision.made") == 1


@on_both_databases
def test_two_at_once_stand_one_after_the_other(app: Flask, client: FlaskClient, sizing: dict[str, Any]) -> None:
    barrier, statuses = threading.Barrier(4), list[int]()

    def work(number: int) -> None:
        barrier.wait()
        body = {"decision": "override", "gpus_granted": number, "reason": "race"}
        statuses.append(decide(app.test_client(), sizing, body).status_code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 4
    items = client.get(f"/api/v1/sizings/{sizing['id']}/decisions").get_json()["items"]
    assert [item["place"] for item in items] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Trainmem-On-Behalf-Of": "slack:T012/U111"}, "TRAINMEM_DECIDERS"),
        (SLACK, "somebody else decides"),
        ({"Trainmem-On-Behalf-Of": "slack:T999/U999", "Trainmem-Groups": "slack:T012/S777"}, "another workspace"),
    ],
)
def test_who_may_not_decide_is_told_and_recorded(
    client: FlaskClient, record: Database, sizing: dict[str, Any], headers: dict[str, str], said: str
) -> None:
    refused = decide(client, sizing, APPROVE, headers)
    assert refused.status_code == 403 and said in refused.get_json()["detail"]
    entry = entries(record)[-1]
    assert (entry["action"], entry["outcome"]) == ("decision.denied", "refused")
    assert entry["actor"]["kind"] == "slack"


def test_a_member_of_a_group_may_decide(client: FlaskClient, sizing: dict[str, Any]) -> None:
    headers = {"Trainmem-On-Behalf-Of": "slack:T012/U222", "Trainmem-Groups": "slack:T012/S777"}
    assert decide(client, sizing, APPROVE, headers).status_code == 201


def test_a_token_needs_the_scope_and_open_mode_does_not(
    client: FlaskClient, record: Database, sizing: dict[str, Any]
) -> None:
    assert decide(client, sizing, APPROVE, {}).status_code == 201
    secrets = []
    for scope in ("size", "decide"):
        with record.writing() as session:
            secrets.append(tokens.create(session, name=scope, scopes=[scope], by=Caller("operator", "ann"))[1])
    elsewhere = {"environ_base": {"REMOTE_ADDR": "192.0.2.7"}}
    body = {"decision": "reject", "reason": "no"}
    answers = [decide(client, sizing, body, {"Authorization": f"Bearer {one}"}, **elsewhere) for one in secrets]
    assert [answer.status_code for answer in answers] == [403, 201]


class TestOwnDecisions:
    @pytest.fixture
    def settings(self, service_url: str) -> Settings:
        deciders = frozenset({"slack:T012/U345"})
        return Settings(database_url=service_url, log_level="error", deciders=deciders, own_decisions=True)

    def test_settings_may_allow_them(self, client: FlaskClient, sizing: dict[str, Any]) -> None:
        assert decide(client, sizing, APPROVE, SLACK).status_code == 201


def test_an_unknown_sizing_and_nothing_to_withdraw(client: FlaskClient, sizing: dict[str, Any]) -> None:
    assert decide(client, {"id": "sz_nothing"}, APPROVE).status_code == 404
    assert client.get("/api/v1/sizings/sz_nothing/decisions").status_code == 404
    withdraw = {"decision": "withdraw", "reason": "oops"}
    assert decide(client, sizing, withdraw).status_code == 409
    decide(client, sizing, APPROVE)
    assert decide(client, sizing, withdraw).status_code == 201
    assert decide(client, sizing, {**withdraw, "reason": "again"}).status_code == 409


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/decision"]),
        ({"decision": "aprove"}, ["/decision"]),
        ({"decision": "reject"}, ["/reason"]),
        ({"decision": "reject", "reason": "  "}, ["/reason"]),
        ({"decision": "override", "reason": "x"}, ["/gpus_granted"]),
        ({"decision": "reject", "reason": "x", "gpus_granted": 8}, ["/gpus_granted"]),
        ({"decision": "approve", "gpus_granted": "8"}, ["/gpus_granted"]),
        ({"decision": "approve", "gpus_granted": True}, ["/gpus_granted"]),
        ({"decision": "approve", "gpus_granted": 0}, ["/gpus_granted"]),
        ({"decision": "approve", "gpus_granted": 1.5, "gpu": 7}, ["/gpus_granted", "/gpu"]),
        ({"decision": "approve", "gpu": "H1000"}, ["/gpu"]),
        ({"decision": "approve", "reson": "x"}, ["/reson"]),
        ([], [""]),
    ],
)
def test_a_bad_decision_is_refused_with_all_that_is_wrong(
    client: FlaskClient, record: Database, sizing: dict[str, Any], body: object, pointers: list[str]
) -> None:
    before = len(entries(record))
    refused = decide(client, sizing, body)
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.get_json()["errors"]] == pointers
    assert len(entries(record)) == before


def test_the_nearest_right_word_is_suggested(client: FlaskClient, sizing: dict[str, Any]) -> None:
    [error] = decide(client, sizing, {"decision": "aprove"}).get_json()["errors"]
    assert error["suggestions"] == ["approve"] and error["given"] == '"aprove"'
    [error] = decide(client, sizing, {"decision": "approve", "reson": "x"}).get_json()["errors"]
    assert error["suggestions"][0] == "reason"


@on_both_databases
def test_news_goes_on_where_it_was_and_skips_none(client: FlaskClient, sizing: dict[str, Any]) -> None:
    start = client.get("/api/v1/decisions?kind=slack").get_json()
    assert start["items"] == []
    decide(client, sizing, APPROVE)
    mine = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}).get_json()
    decide(client, mine, APPROVE)
    decide(client, sizing, {"decision": "reject", "reason": "no"})
    first = client.get(
        "/api/v1/decisions", query_string={"kind": "slack", "cursor": start["next"], "limit": 1}
    ).get_json()
    second = client.get("/api/v1/decisions", query_string={"kind": "slack", "cursor": first["next"]}).get_json()
    assert [item["decision"] for item in first["items"] + second["items"]] == ["approve", "reject"]
    assert first["items"][0]["sizing"]["requester"] == "slack:T012/U345"
    last = client.get("/api/v1/decisions", query_string={"kind": "slack", "cursor": second["next"]}).get_json()
    assert last == {"items": [], "next": second["next"]}
    assert len(client.get("/api/v1/decisions").get_json()["items"]) == 3
    assert client.get("/api/v1/decisions?since=2999-01-01").get_json()["items"] == []
    assert client.get("/api/v1/decisions?cursor=x").status_code == 422


@on_both_databases
@pytest.mark.parametrize("statement", ["UPDATE decision SET decision = 'approve'", "DELETE FROM decision"])
def test_a_decision_cannot_be_changed(
    client: FlaskClient, record: Database, sizing: dict[str, Any], statement: str
) -> None:
    decide(client, sizing, {"decision": "reject", "reason": "no"})
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"), record.writing() as session:
        session.execute(sa.text(statement))
