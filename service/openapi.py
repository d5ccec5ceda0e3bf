"""The OpenAPI document: flask-smorest, with our problem documents in place of its own errors."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

import marshmallow as ma
from flask import Flask, Response
from flask_smorest import Api, Blueprint
from marshmallow import fields
from werkzeug.exceptions import HTTPException

from service import __version__, http
from service.errors import FieldError, InvalidInput

View = TypeVar("View", bound=Callable[..., Any])


class FieldProblem(ma.Schema):
    """One thing wrong with one key."""

    pointer = fields.String(required=True, metadata={"description": "JSON pointer to the key"})
    detail = fields.String(required=True)
    given = fields.String(required=True, allow_none=True, metadata={"description": "What was read"})
    allowed = fields.String(required=True, allow_none=True, metadata={"description": "What would have been right"})
    suggestions = fields.List(fields.String(), required=True, metadata={"description": "The nearest right spellings"})
    position = fields.Integer(
        required=True, allow_none=True, metadata={"description": "Where in a command: a 0-based offset"}
    )


class Problem(ma.Schema):
    """An RFC 9457 problem document."""

    type = fields.String(required=True, metadata={"description": "A URI reference: what kind of problem"})
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    instance = fields.String(required=True, allow_none=True)
    request_id = fields.String(required=True, allow_none=True)
    errors = fields.List(fields.Nested(FieldProblem), required=True)


class ProblemApi(Api):
    """flask-smorest's Api whose documented and real errors are problem documents."""

    ERROR_SCHEMA = Problem

    def handle_http_exception(self, error: HTTPException) -> Response:
        """Werkzeug's errors as everywhere; what webargs found wrong in a query becomes our own errors."""
        if messages := getattr(error, "data", {}).get("messages"):
            return http.handle(InvalidInput(_field_errors(messages)))
        return http.handle(error)

    def _register_responses(self) -> None:
        # Responses that are registered now are the errors; only they have this content type.
        self.DEFAULT_RESPONSE_CONTENT_TYPE = http.PROBLEM_TYPE
        super()._register_responses()
        self.DEFAULT_RESPONSE_CONTENT_TYPE = Api.DEFAULT_RESPONSE_CONTENT_TYPE


def may_fail(blueprint: Blueprint, *statuses: int) -> Callable[[View], View]:
    """Decorator: the operation may answer with a problem document of these statuses."""

    def decorate(view: View) -> View:
        for status in sorted(statuses, reverse=True):
            view = blueprint.alt_response(status, HTTPStatus(status).name)(view)
        return view

    return decorate


def create_api(app: Flask) -> ProblemApi:
    """The API of `app`, described at /api/v1/openapi.json."""
    app.config.update(
        API_TITLE="trainmem",
        API_VERSION=__version__,
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/api/v1",
        API_SPEC_OPTIONS={
            "info": {
                "description": "What a training run needs: memory of every GPU, layout, how many GPUs; recorded in an"
                " audit. Bytes are integers; GB is 10^9 bytes, GiB is 2^30."
            },
        },
    )
    return ProblemApi(app)


def _field_errors(messages: dict[str, Any]) -> list[FieldError]:
    """webargs' {location: {field: [text]}} as our errors."""
    found = []
    for members in messages.values():
        for name, texts in members.items():
            for text in texts if isinstance(texts, list) else [str(texts)]:
                found.append(FieldError(f"/{name}", f"{name}: {text}"))
    return found
