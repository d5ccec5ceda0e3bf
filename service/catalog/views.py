"""GET /api/v1/gpus and /api/v1/models: the catalogue, read by all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import marshmallow as ma
from flask import Flask, Response, current_app, jsonify, request
from flask_smorest import Blueprint

from service import cursors
from service.catalog import schemas
from service.catalog.facts import Catalog
from service.catalog.service import Snapshot, search
from service.database import Database
from service.door import public
from service.engine.errors import nearest
from service.errors import FieldError, NotFound
from service.openapi import may_fail

blueprint = Blueprint("catalog", __name__, url_prefix="/api/v1", description="GPUs and models, with their sources")

_SNAPSHOT = "trainmem_catalog"


def attach(app: Flask, database: Database) -> None:
    """Give `app` the catalogue of `database`."""
    app.extensions[_SNAPSHOT] = Snapshot(database)


def current_catalog() -> Catalog:
    """The catalogue that the current app answers from."""
    return cast(Snapshot, current_app.extensions[_SNAPSHOT]).current()


@blueprint.get("/gpus")
@blueprint.arguments(schemas.CatalogQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.GpuPage)
@public
def gpus(query: dict[str, Any]) -> Response:
    """List the GPUs that runs can be sized for"""
    catalog = current_catalog()
    return _page(catalog, catalog.gpus, query, schemas.gpu)


@blueprint.get("/gpus/<id>")
@blueprint.response(200, schemas.GpuDetail)
@may_fail(blueprint, 404)
@public
def gpu(id: str) -> Response:
    """One GPU with prices and sources"""
    catalog = current_catalog()
    return _tagged(catalog, schemas.gpu_detail(_find(catalog.gpus, id, "gpu")))


@blueprint.get("/models")
@blueprint.arguments(schemas.CatalogQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.ModelPage)
@public
def models(query: dict[str, Any]) -> Response:
    """List the models that runs can be sized for"""
    catalog = current_catalog()
    return _page(catalog, catalog.models, query, schemas.model)


@blueprint.get("/models/<id>")
@blueprint.response(200, schemas.ModelDetail)
@may_fail(blueprint, 404)
@public
def model(id: str) -> Response:
    """One model with its configuration and sources"""
    catalog = current_catalog()
    return _tagged(catalog, schemas.model_detail(_find(catalog.models, id, "model")))


def _find(facts: Mapping[str, Any], id: str, kind: str) -> Any:
    if id in facts:
        return facts[id]
    near = nearest(id, facts)
    error = FieldError("", f"no {kind} has the id {id[:100]}", id[:100], f"an id of /api/v1/{kind}s", near)
    raise NotFound(f"The catalogue has no {kind} {id[:100]}.", errors=[error])


def _page(
    catalog: Catalog, facts: Mapping[str, Any], query: dict[str, Any], shape: Callable[[Any], dict[str, Any]]
) -> Response:
    found = search(cast(Any, facts), query["q"]) if query.get("q") else list(facts.values())
    start = _start(query["cursor"]) if "cursor" in query else 0
    end = start + query["limit"]
    following = cursors.encode(end) if end < len(found) else None
    return _tagged(catalog, {"items": [shape(fact) for fact in found[start:end]], "next": following})


def _start(cursor: str) -> int:
    (start,) = cursors.decode(cursor, int)
    if start < 0:
        raise cursors.unreadable(cursor)
    return int(start)


def _tagged(catalog: Catalog, document: dict[str, Any]) -> Response:
    """The document with a strong ETag; it changes when the catalogue does."""
    response = jsonify(document)
    response.add_etag()
    response.headers["Cache-Control"] = "no-cache"
    response.headers["Trainmem-Catalog"] = catalog.digest
    response.make_conditional(request)
    return response
