"""POST /api/v1/sizings/batch: one answer each, in order, each recorded by itself."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.database import Database
from service.requests.schemas import load_request
from service.sizings import batch
from service.sizings.batch import asks_for_recommendation
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts

GOOD = {"model": "gpt2", "tp": 1}


def answers(client: FlaskClient, requests: list[Any], **headers: str) -> list[dict[str, Any]]:
    answer = client.post("/api/v1/sizings/batch", json={"requests": requests}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.content_type == "application/json"
    results: list[dict[str, Any]] = answer.get_json()["results"]
    return results


@on_both_databases
def test_one_bad_request_does_not_sink_the_rest(client: FlaskClient, record: Database) -> None:
    results = answers(client, [GOOD, {"model": "nope"}, {"command": "gpt2 tp=1 mb=2"}, "text", {**GOOD, "tp": 5}])

    assert ["error" in result for result in results] == [False, True, False, True, True]
    assert [results[place]["error"]["status"] for place in (1, 3, 4)] == [422, 422, 422]
    assert results[1]["error"]["errors"][0]["pointer"] == "/model"
    assert results[4]["error"]["errors"][0]["pointer"] == "/tp"
    assert results[0]["request"] == GOOD
    assert counts(record)["sizing"] == 2
    assert chain_fault(record) is None
    read = client.get(f"/api/v1/sizings/{results[2]['id']}").get_json()
    assert read == results[2]


@on_both_databases
def test_a_batch_that_is_sent_again_records_only_what_is_new(client: FlaskClient, record: Database) -> None:
    key = {"Idempotency-Key": "nightly"}
    first = answers(client, [GOOD, {**GOOD, "micro_batch": 2}], **key)
    second = answers(client, [GOOD, {**GOOD, "micro_batch": 2}, {**GOOD, "micro_batch": 4}], **key)
    assert second[:2] == first
    assert counts(record)["sizing"] == 3


def test_a_defect_in_one_answer_is_told_in_its_place(
    client: FlaskClient, record: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = batch.create

    def breaks_at_two(*args: Any, **named: Any) -> Any:
        if named["request"].micro_batch == 2:
            raise ZeroDivisionError
        return real(*args, **named)

    monkeypatch.setattr(batch, "create", breaks_at_two)
    results = answers(client, [GOOD, {**GOOD, "micro_batch": 2}, GOOD])
    assert [result.get("error", {}).get("status") for result in results] == [None, 500, None]
    assert counts(record)["sizing"] == 2


@pytest.mark.parametrize(
    "body", [[], {}, {"requests": {}}, {"requests": [GOOD], "more": 1}, {"requests": []}, {"requests": [GOOD] * 1001}]
)
def test_a_batch_of_another_shape_or_size_is_refused_whole(client: FlaskClient, record: Database, body: object) -> None:
    refused = client.post("/api/v1/sizings/batch", json=body)
    assert refused.status_code == 422
    assert refused.get_json()["errors"][0]["pointer"] == "/requests"
    assert counts(record)["sizing"] == 0


def test_fifty_may_ask_for_a_recommendation(client: FlaskClient, record: Database) -> None:
    refused = client.post("/api/v1/sizings/batch", json={"requests": [{"model": "gpt2"}] * 51 + [GOOD] * 100})
    assert refused.status_code == 422
    error = refused.get_json()["errors"][0]
    assert (error["given"], "at most 50" in error["allowed"]) == ("51", True)
    assert counts(record)["sizing"] == 0


@pytest.mark.parametrize(
    ("request_", "searched"),
    [
        ({"model": "8B"}, True),
        ({"model": "8B", "gpus": 8}, True),
        ({"model": "8B", "tp": 8}, False),
        ({"model": "8B", "dp": 8, "shard": "parameters"}, False),
        ({"model": "8B", "tp": 8, "recompute": "auto"}, True),
        ({"model": "8B", "tp": "auto"}, True),
        ({"model": "8B", "tp": 8, "gpu": ["H100", "H200"]}, True),
        ({"model": "8B", "tp": 8, "gpus": 8, "solve": "micro_batch"}, True),
    ],
)
def test_what_asks_for_a_recommendation(request_: dict[str, Any], searched: bool) -> None:
    assert asks_for_recommendation(load_request(request_)) is searched
