"""The OpenAPI document: flask-smorest, with our problem documents in place of its own errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from http import HTTPStatus
from typing import Any, TypeVar

import marshmallow as ma
from flask import Flask, Response, request
from flask_smorest import Api, Blueprint
from marshmallow import fields
from werkzeug.exceptions import HTTPException

from service import __version__, http
from service.engine.errors import nearest
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
        found = getattr(error, "data", {})
        if "messages" in found:
            return http.handle(InvalidInput(_field_errors(found["messages"], found["schema"].fields)))
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


def _field_errors(messages: dict[str, dict[str, Any]], known: Collection[str]) -> Iterator[FieldError]:
    """webargs' {location: {name: [text]}} as our errors, with what was read and the nearest right name."""
    for name, texts in itertools.chain.from_iterable(members.items() for members in messages.values()):
        given = request.args.get(name)
        if name not in known:
            yield FieldError(
                f"/{name}", f"{name} is not a parameter here", given, ", ".join(known), nearest(name, known)
            )
            continue
        for text in texts:
            sentence = str(text).rstrip(".")
            yield FieldError(f"/{name}", f"{name}: {sentence[:1].lower()}{sentence[1:]}", given)
