"""schemathesis asks every operation with what its description allows and with what it does not: no answer may be a
server error, have a status or content type that is not documented, or a body that is not as described."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
import schemathesis
from flask import Flask
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

OPERATIONS = [
    ("GET", "/api/v1/gpus"),
    ("GET", "/api/v1/gpus/{id}"),
    ("GET", "/api/v1/models"),
    ("GET", "/api/v1/models/{id}"),
    ("GET", "/api/v1/audit/entries"),
    ("GET", "/api/v1/audit/entries/{seq}"),
    ("GET", "/api/v1/audit/entries/{seq}/proof"),
    ("GET", "/api/v1/audit/consistency"),
    ("GET", "/api/v1/audit/checkpoint"),
    ("GET", "/api/v1/audit/keys"),
    ("GET", "/api/v1/audit/export"),
    ("GET", "/api/v1/sizings"),
    ("GET", "/api/v1/sizings/{id}"),
    ("GET", "/api/v1/sizings/{id}/decisions"),
    ("POST", "/api/v1/sizings/{id}/decisions"),
    ("GET", "/api/v1/sizings/{id}/observations"),
    ("POST", "/api/v1/sizings/{id}/observations"),
    ("GET", "/api/v1/decisions"),
    ("GET", "/api/v1/estimate"),
    ("POST", "/api/v1/sizings"),
    ("POST", "/api/v1/sizings/batch"),
]
HELD = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: str(part))
def test_no_request_breaks_what_is_described(app: Flask, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)

    @hypothesis.settings(
        max_examples=30,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=schema[path][method].as_strategy())
    def ask(case: Any) -> None:
        case.validate_response(case.call(), checks=HELD)

    ask()


def test_every_operation_is_asked(app: Flask) -> None:
    document = app.test_client().get("/api/v1/openapi.json").get_json()
    described = {(m.upper(), p) for p, item in document["paths"].items() for m in item.keys() - {"parameters"}}
    assert described == set(OPERATIONS)
