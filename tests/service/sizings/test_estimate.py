"""GET /api/v1/estimate: the same answer, unrecorded, from text, and cheap to ask again."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from service.catalog.facts import packaged
from service.database import Database
from service.requests.schemas import load_request
from service.sizings.answer import answer
from tests.support.record import counts


def test_it_is_the_answer_that_a_recording_has(client: FlaskClient, record: Database) -> None:
    estimate = client.get("/api/v1/estimate?model=llama-3.1-8b&seq=4k&tp=8&gpu=H100")
    assert estimate.status_code == 200
    assert counts(record)["sizing"] == 0

    sizing = client.post("/api/v1/sizings", json=estimate.get_json()["request"]).get_json()
    recorded_only = {name: sizing.pop(name) for name in ("id", "recorded_at", "audit")}
    assert all(recorded_only.values())
    assert sizing == estimate.get_json()


def test_it_is_the_answer_that_the_terminal_gives(client: FlaskClient) -> None:
    command = {"command": "8B seq=4k tp=8"}
    assert client.get("/api/v1/estimate", query_string=command).get_json() == answer(load_request(command), packaged())


def test_an_answer_that_is_kept_is_not_computed_again(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.get("/api/v1/estimate?model=gpt2&tp=1&mb=2")
    assert not first.headers["ETag"].startswith("W/")
    monkeypatch.setattr("service.sizings.views.answer", None)
    kept = client.get("/api/v1/estimate?mb=2&tp=1&model=gpt2", headers={"If-None-Match": first.headers["ETag"]})
    assert (kept.status_code, kept.data, kept.headers["ETag"]) == (304, b"", first.headers["ETag"])


def test_another_question_has_another_tag(client: FlaskClient) -> None:
    tags = {client.get(f"/api/v1/estimate?model=gpt2&tp=1&mb={n}").headers["ETag"] for n in (1, 2, 4)}
    assert len(tags) == 3


@pytest.mark.parametrize(
    ("query", "pointers"),
    [
        ("", ["/model"]),
        ("model=8B&tp=two&mb=0", ["/micro_batch", "/tp"]),
        ("model=8B&colour=red", ["/colour"]),
        ("command=8B+gpu%3DH1000", ["/gpu"]),
        ("model=8B&model=70B", ["/model"]),
    ],
)
def test_what_cannot_be_answered_is_refused(client: FlaskClient, query: str, pointers: list[str]) -> None:
    refused = client.get(f"/api/v1/estimate?{query}")
    assert refused.status_code == 422
    assert refused.content_type == "application/problem+json"
    assert "ETag" not in refused.headers
    assert (
        sorted({"/micro_batch" if e["pointer"] == "/mb" else e["pointer"] for e in refused.get_json()["errors"]})
        == pointers
    )


def test_a_null_character_is_refused(client: FlaskClient) -> None:
    assert client.get("/api/v1/estimate?model=a%00b").status_code == 400
