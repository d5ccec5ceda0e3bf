"""/api/v1/sizings and /api/v1/estimate: thin functions over sizings.service."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import marshmallow as ma
from flask import Response, json, jsonify, request, stream_with_context, url_for
from flask_smorest import Blueprint

from service import __version__
from service.catalog.facts import Catalog
from service.catalog.views import current_catalog
from service.current import database
from service.door import current_caller, needs, public
from service.errors import FieldError, InvalidInput
from service.http import request_id
from service.openapi import may_fail
from service.requests.schemas import load_text_request
from service.sizings import documents, schemas
from service.sizings import service as sizings
from service.sizings.answer import Detail, answer
from service.sizings.batch import create_batch
from service.sizings.idempotency import checked_key
from service.sizings.names import read_request
from service.sizings.openapi_parts import BATCH_BODY, DETAIL, QUERY, QUESTION_BODY, WRITE_HEADERS
from service.sizings.search import FILTERS, search

blueprint = Blueprint("sizings", __name__, url_prefix="/api/v1", description="What a training run needs, recorded")

IMMUTABLE = "private, max-age=31536000, immutable"


@blueprint.post("/sizings")
@blueprint.doc(requestBody=QUESTION_BODY, parameters=WRITE_HEADERS)
@blueprint.response(201, schemas.Sizing)
@may_fail(blueprint, 400, 401, 403, 409, 413, 415, 422, 429, 503)
@needs("size", what="sizing")
def create() -> Response:
    """Size a run and record the answer

    The body is the flat request, or `{"command": "70B seq=8k mb=2 gpu=H100"}`. A run that cannot fit is an answer, too.
    """
    asking = _asking()
    catalog = current_catalog()
    question = read_request(request.get_json(), catalog)
    made = sizings.create(database(), request=question, catalog=catalog, asking=asking)
    response = _document(made.document, status=201)
    response.headers["Location"] = url_for("sizings.read", id=made.id)
    if made.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@blueprint.post("/sizings/batch")
@blueprint.doc(requestBody=BATCH_BODY, parameters=WRITE_HEADERS)
@blueprint.response(200, schemas.BatchAnswers)
@may_fail(blueprint, 400, 401, 403, 413, 415, 422, 429)
@needs("size", what="sizing")
def create_many() -> Response:
    """Size and record many runs, one answer each

    At most 1,000 requests that give a layout, and 50 that ask for a recommendation. One bad request does not sink the
    rest: its answer is `{"error": problem}`.
    """
    asking = _asking()
    answers = create_batch(database(), requests=_requests(), catalog=current_catalog(), asking=asking)
    commas = itertools.chain([""], itertools.repeat(","))

    def body() -> Iterator[str]:
        yield '{"results":['
        for comma, text in zip(commas, answers, strict=False):
            yield comma + text
        yield "]}"

    return Response(stream_with_context(body()), content_type="application/json")


@blueprint.get("/sizings/<id>")
@blueprint.response(200, schemas.Sizing)
@blueprint.alt_response(304, description="The caller has it already; it never changes")
@may_fail(blueprint, 404)
@needs("size", "audit:read")
def read(id: str) -> Response:
    """A recorded sizing, unchanged"""
    with database().reading() as session:
        response = _document(sizings.read(session, id).document)
    response.headers["Cache-Control"] = IMMUTABLE
    response.make_conditional(request)
    return response


@blueprint.get("/sizings")
@blueprint.arguments(schemas.SizingQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.SizingPage)
@needs("audit:read")
def find(query: dict[str, Any]) -> Response:
    """Search recorded sizings, newest first"""
    with database().reading() as session:
        items, following = search(
            session,
            filters={name: query[name] for name in FILTERS if name in query},
            since=query.get("since"),
            cursor=query.get("cursor"),
            limit=query["limit"],
        )
    response = jsonify({"items": items, "next": following})
    response.headers["Cache-Control"] = "no-store"
    if following:
        query_string = urlencode({**request.args.to_dict(), "cursor": following})
        response.headers["Link"] = f'<{url_for("sizings.find")}?{query_string}>; rel="next"'
    return response


@blueprint.get("/estimate")
@blueprint.doc(parameters=[*QUERY, *DETAIL])
@blueprint.response(200, schemas.Estimate)
@blueprint.alt_response(304, description="The caller has this answer already")
@public
def estimate() -> Response:
    """Size a run without recording it

    Every key of a sizing request is a query parameter, and so are the short words of a command; values are text as in
    a command (`seq=8k`). `command` takes a whole command. `detail=rows` adds every tensor behind the terms.
    """
    catalog = current_catalog()
    tag = _question_tag(catalog)
    if tag in request.if_none_match:
        response = Response(status=304)
    else:
        asked = request.args.to_dict()
        detail = asked_detail(asked)
        response = Response(documents.dumps(answer(load_text_request(asked), catalog, detail)))
        response.content_type = "application/json"
    response.set_etag(tag)
    response.headers["Cache-Control"] = "no-cache"
    return response


def asked_detail(asked: dict[str, str]) -> Detail | None:
    """Take `detail`, `term` and `moment` out of a query; they say how much is answered, not what is sized."""
    detail, term, moment = (asked.pop(name, None) for name in ("detail", "term", "moment"))
    if detail not in (None, "rows"):
        raise InvalidInput([FieldError("/detail", f"there is no detail {detail}", detail, "rows", ("rows",))])
    return Detail(term, moment) if detail or term or moment else None


def _asking() -> sizings.Asking:
    key = checked_key(request.headers.get("Idempotency-Key"))
    who = current_caller()
    return sizings.Asking(caller=who, request_id=request_id(), via=who.via, key=key)


def _requests() -> list[Any]:
    body = request.get_json()
    if not isinstance(body, dict) or set(body) != {"requests"} or not isinstance(body["requests"], list):
        wrong = "the body of a batch has one key, requests, with a list"
        raise InvalidInput([FieldError("/requests", wrong, None, '{"requests": [sizing request, …]}')])
    return body["requests"]


def _document(text: str, status: int = 200) -> Response:
    response = Response(text, status, content_type="application/json")
    response.set_etag(hashlib.sha256(text.encode()).hexdigest()[:32])
    return response


def _question_tag(catalog: Catalog) -> str:
    """The same question, engine and catalogue give the same answer, so that need not be computed to be compared."""
    told = json.dumps([sorted(request.args.items()), catalog.digest, __version__])
    return hashlib.sha256(told.encode()).hexdigest()[:32]
