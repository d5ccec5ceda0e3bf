"""GET /api/v1/sizings: newest first, filtered, page after page without gaps."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from service.database import Database
from service.sizings.search import search
from tests.support.databases import on_both_databases

pytestmark = on_both_databases

ANN, BOB = "slack:T1/UANN", "slack:T1/UBOB"


@pytest.fixture
def recorded(client: FlaskClient) -> list[str]:
    """Six sizings, oldest first: Ann and Bob in turn, GPT-2 and Llama."""
    ids = []
    for number in range(6):
        made = client.post(
            "/api/v1/sizings",
            json={"model": "gpt2" if number < 4 else "llama-3.1-8b", "tp": 1, "gpu": "H100" if number % 3 else "A100"},
            headers={"Trainmem-On-Behalf-Of": ANN if number % 2 else BOB},
        )
        ids.append(made.get_json()["id"])
    return ids


def found(client: FlaskClient, **query: object) -> list[str]:
    answer = client.get("/api/v1/sizings", query_string=query)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.get_json()["items"]]


def test_newest_come_first_with_what_matters(client: FlaskClient, recorded: list[str]) -> None:
    answer = client.get("/api/v1/sizings").get_json()
    assert [item["id"] for item in answer["items"]] == recorded[::-1]
    assert answer["next"] is None
    whole = client.get(f"/api/v1/sizings/{recorded[-1]}").get_json()
    newest = answer["items"][0]
    assert newest["recorded_at"] == whole["recorded_at"]
    assert newest["model"]["id"] == whole["model"]["id"] == "llama-3.1-8b"
    assert newest["gpu"]["id"] == whole["gpu"]["id"]
    assert newest["per_gpu"]["gpus"] == whole["per_gpu"]["gpus"]
    assert newest["verdict"] == whole["verdict"]
    assert (newest["requester"], newest["via"]) == (ANN, "slack")


def test_filters_narrow_together(client: FlaskClient, recorded: list[str]) -> None:
    assert found(client, requester=ANN) == [recorded[5], recorded[3], recorded[1]]
    assert found(client, model="gpt2") == recorded[3::-1]
    assert found(client, model="gpt2", requester=BOB) == [recorded[2], recorded[0]]
    assert found(client, gpu="a100-sxm4-40gb") == [recorded[3], recorded[0]]
    assert found(client, team="T1") == recorded[::-1]
    assert found(client, team="T2") == []


def test_since_takes_a_day_or_a_moment(client: FlaskClient, recorded: list[str]) -> None:
    moment = client.get(f"/api/v1/sizings/{recorded[4]}").get_json()["recorded_at"]
    assert found(client, since=moment) == [recorded[5], recorded[4]]
    tomorrow = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=1)
    assert found(client, since=tomorrow.isoformat()) == []
    assert found(client, since="2026-01-01") == recorded[::-1]


def test_pages_follow_each_other_while_more_are_recorded(client: FlaskClient, recorded: list[str]) -> None:
    seen, query = [], {"limit": "2", "requester": BOB}
    while True:
        answer = client.get("/api/v1/sizings", query_string=query)
        seen += [item["id"] for item in answer.get_json()["items"]]
        client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}, headers={"Trainmem-On-Behalf-Of": BOB})
        if not (following := answer.get_json()["next"]):
            break
        assert answer.headers["Link"].endswith('; rel="next"')
        assert following in answer.headers["Link"]
        query["cursor"] = following
    assert seen == [recorded[4], recorded[2], recorded[0]]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("cursor=nonsense", "/cursor"),
        ("cursor=WzEsMV0", "/cursor"),  # [1,1]
        ("cursor=WzEsOTk5OTk5OTk5OTk5OTk5OTk5OTk5LCJ4Il0", "/cursor"),  # a moment beyond all time
        ("since=yesterday", "/since"),
        ("limit=0", "/limit"),
        ("limit=201", "/limit"),
        ("limit=many", "/limit"),
        ("modle=gpt2", "/modle"),
        ("verdict=maybe", "/verdict"),
        ("model=gpt2&model=8B", "/model"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused(client: FlaskClient, query: str, pointer: str) -> None:
    refused = client.get(f"/api/v1/sizings?{query}")
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.get_json()["errors"]] == [pointer]


@pytest.mark.parametrize("filters", [{}, {"requester": ANN}, {"model": "gpt2"}, {"gpu": "h100"}, {"team": "T1"}])
def test_every_page_is_read_from_an_index(
    database: Database, filters: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = []
    with database.reading() as session:
        sa.event.listen(
            session.connection(), "before_cursor_execute", lambda *args: statements.append((args[2], args[3]))
        )
        search(session, filters=filters, since=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
        [(statement, parameters)] = statements
        explain = "EXPLAIN QUERY PLAN " if session.connection().dialect.name == "sqlite" else "EXPLAIN "
        if explain == "EXPLAIN ":
            session.connection().exec_driver_sql("SET enable_seqscan = off")  # an empty table is never worth an index
            session.connection().exec_driver_sql("SET enable_sort = off")
        plan = "\n".join(
            str(row) for row in session.connection().exec_driver_sql(explain + statement, parameters).all()
        )
    assert f"ix_sizing_{''.join(f'{name}_' for name in filters)}recorded_at_id" in plan
    assert "SCAN sizing\n" not in plan and "TEMP B-TREE" not in plan and "Sort" not in plan
