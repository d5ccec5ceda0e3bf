"""/api/v1/sizings/{id}/decisions, and /api/v1/decisions for news."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from flask import Response, jsonify, request
from flask_smorest import Blueprint

from service.catalog.facts import Catalog
from service.catalog.resolve import resolve_gpu
from service.catalog.views import current_catalog
from service.current import database, settings
from service.door import identity, needs, refuse
from service.errors import Forbidden
from service.http import request_id
from service.json_body import documented, load
from service.openapi import may_fail
from service.sizings.decisions import schemas
from service.sizings.decisions import service as decisions
from service.sizings.idempotency import checked_key
from service.sizings.openapi_parts import WRITE_HEADERS

blueprint = Blueprint("decisions", __name__, url_prefix="/api/v1", description="What was decided on a sizing")

_BODY = schemas.DecisionBody()
_APPROVE = {"decision": "approve"}
_OVERRIDE = {"decision": "override", "gpus_granted": 32, "reason": "half of the pool is taken until Friday"}


@blueprint.post("/sizings/<id>/decisions")
@blueprint.doc(
    requestBody=documented(schemas.DecisionBody, {"decision": "approve"}, _OVERRIDE), parameters=WRITE_HEADERS
)
@blueprint.response(201, schemas.Decision)
@blueprint.alt_response(200, schema=schemas.Decision, description="This decision was recorded before")
@may_fail(blueprint, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
@needs("decide", what="decision")
def decide(id: str) -> Response:
    """Approve, override, reject or withdraw

    A reason is needed unless it is an approval. The last decision on a sizing stands.
    """
    key, who = checked_key(request.headers.get("Idempotency-Key")), identity()
    with database().reading() as session:
        try:
            decisions.check_policy(session, sizing_id=id, who=who, settings=settings())
            refused = None
        except Forbidden as error:
            refused = error
    if refused is not None:
        refuse(refused, what="decision")
    body = load(_BODY, request.get_json())
    made = decisions.decide(
        database(),
        sizing_id=id,
        body={**body, "gpu": _gpu(current_catalog(), body["gpu"])},
        by=who.caller,
        via=who.caller.via,
        request_id=request_id(),
        key=key,
    )
    response = jsonify(made.document)
    response.status_code = 200 if made.replayed else 201
    if made.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


@blueprint.get("/sizings/<id>/decisions")
@blueprint.response(200, schemas.DecisionPage)
@may_fail(blueprint, 401, 403, 404, 429)
@needs("size", "audit:read", "decide")
def of_sizing(id: str) -> Response:
    """The decisions on a sizing, first to last"""
    with database().reading() as session:
        return _uncached({"items": decisions.of_sizing(session, id), "next": None})


@blueprint.get("/decisions")
@blueprint.arguments(schemas.NewsQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.NewsPage)
@may_fail(blueprint, 401, 403, 429)
@needs("audit:read")
def news(query: dict[str, Any]) -> Response:
    """News of decisions, in the order in which they were made

    Ask again with `next` as `cursor`: it goes on behind the last one, and none is ever skipped.
    """
    with database().reading() as session:
        items, following = decisions.news(session, **query)
    return _uncached({"items": items, "next": following})


def _gpu(catalog: Catalog, name: str | None) -> str | None:
    return None if name is None else resolve_gpu(catalog, name).gpu.id


def _uncached(document: dict[str, Any]) -> Response:
    response = jsonify(document)
    response.headers["Cache-Control"] = "no-store"
    return response
