"""Observations: once for each job, beside what was predicted, never changed."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries

OK = {"job_id": "slurm-1", "outcome": "ok", "gpus": 8, "peak": {"allocated_bytes": 61_000_000_000}}


@pytest.fixture
def sizing(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}).get_json()
    return found


def observe(client: FlaskClient, sizing: dict[str, Any], body: object):  # type: ignore[no-untyped-def]
    return client.post(f"/api/v1/sizings/{sizing['id']}/observations", json=body)


@on_both_databases
def test_what_a_job_used_stands_beside_what_was_predicted(
    client: FlaskClient, record: Database, sizing: dict[str, Any]
) -> None:
    made = observe(client, sizing, {**OK, "framework": "torchtitan", "framework_version": "0.2.0"})
    assert made.status_code == 201
    seen = made.get_json()
    assert seen["peak"] == {"allocated_bytes": 61_000_000_000, "reserved_bytes": None, "device_bytes": None}
    peak = sizing["per_gpu"]["peak"]
    assert seen["predicted"] == {name: peak[name] for name in seen["peak"]}
    entry = entries(record)[-1]
    assert (entry["action"], entry["subject"]) == ("observation.made", sizing["id"])
    assert entry["request"]["peak"]["allocated_bytes"] == 61_000_000_000
    assert seen["audit"]["seq"] == entry["seq"] and chain_fault(record) is None
    listed = client.get(f"/api/v1/sizings/{sizing['id']}/observations").get_json()
    assert listed == {"items": [seen], "next": None}


@on_both_databases
def test_one_job_is_one_observation(client: FlaskClient, record: Database, sizing: dict[str, Any]) -> None:
    first, again = observe(client, sizing, OK), observe(client, sizing, {**OK, "framework": None, "gpus": 8.0})
    assert (first.status_code, again.status_code) == (201, 200) and first.get_json() == again.get_json()
    other = observe(client, sizing, {**OK, "gpus": 16})
    assert other.status_code == 409 and first.get_json()["id"] in other.get_json()["detail"]
    assert observe(client, sizing, {**OK, "job_id": "slurm-2", "outcome": "oom", "peak": {}}).status_code == 201
    assert [entry["action"] for entry in entries(record)].count("observation.made") == 2


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"peak": {}}, ["/peak"]),
        ({"outcome": "okay"}, ["/outcome"]),
        ({"peak": {"allocated_bytes": "61 GB"}}, ["/peak/allocated_bytes"]),
        ({"peak": {"allocated_bytes": 0, "reserved": 1}}, ["/peak/allocated_bytes", "/peak/reserved"]),
        ({"peak": {"allocated_bytes": 2**60}}, ["/peak/allocated_bytes"]),
        ({"job_id": "", "gpus": -1}, ["/job_id", "/gpus"]),
        ({"job_id": None}, ["/job_id"]),
        ({"peak": 7}, ["/peak"]),
    ],
)
def test_a_bad_observation_is_refused_with_all_that_is_wrong(
    client: FlaskClient, record: Database, sizing: dict[str, Any], change: dict[str, Any], pointers: list[str]
) -> None:
    before = len(entries(record))
    refused = observe(client, sizing, {**OK, **change})
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.get_json()["errors"]] == pointers
    assert len(entries(record)) == before


def test_an_unknown_sizing(client: FlaskClient) -> None:
    assert observe(client, {"id": "sz_nothing"}, OK).status_code == 404
    assert client.get("/api/v1/sizings/sz_nothing/observations").status_code == 404


@on_both_databases
@pytest.mark.parametrize("statement", ["UPDATE observation SET gpus = 1", "DELETE FROM observation"])
def test_an_observation_cannot_be_changed(
    client: FlaskClient, record: Database, sizing: dict[str, Any], statement: str
) -> None:
    observe(client, sizing, OK)
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"), record.writing() as session:
        session.execute(sa.text(statement))
