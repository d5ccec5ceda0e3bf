"""/api/v1/sizings/{id}/observations."""

from __future__ import annotations

from flask import Response, jsonify, request
from flask_smorest import Blueprint

from service.current import database
from service.door import current_caller, needs
from service.http import request_id
from service.json_body import documented, load
from service.openapi import may_fail
from service.sizings.observations import schemas
from service.sizings.observations import service as observations

blueprint = Blueprint("observations", __name__, url_prefix="/api/v1", description="What a job really used")

_BODY = schemas.ObservationBody()
_EXAMPLE = {
    "job_id": "slurm-4711",
    "outcome": "ok",
    "gpus": 64,
    "peak": {"allocated_bytes": 61_203_283_968},
    "framework": "torchtitan",
    "framework_version": "0.2.0",
}


@blueprint.post("/sizings/<id>/observations")
@blueprint.doc(requestBody=documented(schemas.ObservationBody, _EXAMPLE))
@blueprint.response(201, schemas.Observation)
@blueprint.alt_response(200, schema=schemas.Observation, description="This job was reported before, with these numbers")
@may_fail(blueprint, 400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
@needs("observe", what="observation")
def observe(id: str) -> Response:
    """Report what a job used

    The same job with the same numbers again is 200, with other numbers 409.
    """
    made = observations.observe(
        database(),
        sizing_id=id,
        body=load(_BODY, request.get_json()),
        by=current_caller(),
        via=current_caller().via,
        request_id=request_id(),
    )
    response = jsonify(made.document)
    response.status_code = 200 if made.replayed else 201
    return response


@blueprint.get("/sizings/<id>/observations")
@blueprint.response(200, schemas.ObservationPage)
@may_fail(blueprint, 401, 403, 404, 429)
@needs("size", "audit:read", "observe")
def of_sizing(id: str) -> Response:
    """The observations on a sizing, first to last"""
    with database().reading() as session:
        response = jsonify({"items": observations.of_sizing(session, id), "next": None})
    response.headers["Cache-Control"] = "no-store"
    return response
