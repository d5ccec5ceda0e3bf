"""What every answer of the service has in common, and what the service says of itself."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import OpenAPIV31SpecValidator

from service import __version__
from service.app import create_app
from service.current import database
from service.database import Database
from service.settings import Settings
from tests.support.databases import on_both_databases


def test_the_openapi_document_is_valid_and_complete(client: FlaskClient, app: Flask) -> None:
    document = client.get("/api/v1/openapi.json").get_json()
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == __version__
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []

    served = {
        (re.sub(r"<(?:[^:>]+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/api/") and rule.rule != "/api/v1/openapi.json"
    }
    described = {(path, method) for path, item in document["paths"].items() for method in item.keys() - {"parameters"}}
    assert described == served


def test_every_operation_is_explained(client: FlaskClient) -> None:
    document = client.get("/api/v1/openapi.json").get_json()
    for path, methods in document["paths"].items():
        for method in methods.keys() - {"parameters"}:  # those that all methods of a path share
            assert methods[method].get("summary"), (method, path)
            assert methods[method]["responses"]["default"], (method, path)


def test_errors_are_documented_as_problem_documents(client: FlaskClient) -> None:
    document = client.get("/api/v1/openapi.json").get_json()
    for response in document["components"]["responses"].values():
        assert list(response["content"]) == ["application/problem+json"]


def test_the_callers_request_id_is_kept(client: FlaskClient) -> None:
    answer = client.get("/healthz", headers={"X-Request-Id": "slack-01:a.b_c"})
    assert answer.headers["X-Request-Id"] == "slack-01:a.b_c"


@pytest.mark.parametrize("hostile", ["a b", "x" * 65, "ä", "<script>", ""])
def test_a_hostile_request_id_is_replaced(client: FlaskClient, hostile: str) -> None:
    answer = client.get("/healthz", headers={"X-Request-Id": hostile.encode().decode("latin-1")})
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"])


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/gpus", "/api/v1/nothing", "/docs", "/static/style.css"])
def test_security_headers_are_everywhere(client: FlaskClient, path: str) -> None:
    with client.get(path) as answer:
        headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "script-src 'self'" in policy and "unsafe-eval" not in policy


def test_an_unknown_path_is_a_problem_document(client: FlaskClient) -> None:
    missing = client.get("/api/v1/nothing")
    assert (missing.status_code, missing.content_type) == (404, "application/problem+json")
    assert missing.get_json()["instance"] == "/api/v1/nothing"


def test_a_wrong_method_keeps_what_is_allowed(client: FlaskClient) -> None:
    wrong = client.delete("/api/v1/gpus")
    assert wrong.status_code == 405
    assert set(wrong.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}


def test_a_person_gets_a_page_and_a_program_a_document(client: FlaskClient) -> None:
    assert client.get("/nothing", headers={"Accept": "text/html,*/*"}).content_type.startswith("text/html")
    assert client.get("/nothing", headers={"Accept": "application/json"}).content_type == "application/problem+json"


def test_a_defect_is_told_without_its_insides(
    capsys: pytest.CaptureFixture[str], app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret of the insides")

    monkeypatch.setattr("service.catalog.views.search", broken)
    answer = app.test_client().get("/api/v1/gpus?q=x", headers={"X-Request-Id": "r-500"})
    assert (answer.status_code, answer.content_type) == (500, "application/problem+json")
    assert "secret" not in answer.text
    assert "r-500" in answer.get_json()["detail"]
    logged = capsys.readouterr().err
    assert "r-500" in logged and "the secret of the insides" in logged


def test_a_database_that_does_not_answer_is_503() -> None:
    nobody = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    app = create_app(Settings(database_url=nobody, log_level="error", log_format="json"))
    client = app.test_client()
    answer = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1})
    assert (answer.status_code, answer.content_type) == (503, "application/problem+json")
    assert int(answer.headers["Retry-After"]) >= 1
    assert client.get("/healthz").status_code == 200
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.get_json()["checks"] == {"database": "does not answer"}
    with app.app_context():
        database().dispose()


@on_both_databases
def test_a_migrated_service_is_ready(client: FlaskClient) -> None:
    ready = client.get("/readyz")
    assert ready.status_code == 200
    checks = {"database": "ok", "schema": "ok", "catalog": "ok", "audit": "ok"}
    assert ready.get_json() == {"status": "ready", "checks": checks}


@on_both_databases
def test_an_older_schema_is_not_ready(client: FlaskClient, record: Database) -> None:
    with record.writing() as session:
        session.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert "run trainmem migrate" in ready.get_json()["checks"]["schema"]


@on_both_databases
def test_an_empty_catalogue_is_not_ready(client: FlaskClient, record: Database) -> None:
    with record.writing() as session:
        session.execute(sa.text("DELETE FROM catalog_state"))
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.get_json()["checks"]["catalog"].startswith("empty")


@on_both_databases
def test_a_database_that_was_never_migrated_is_not_ready(app: Flask, record: Database) -> None:
    with record.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE alembic_version"))
    assert app.test_client().get("/readyz").status_code == 503
