"""/api/v1/audit: entries, export, checkpoints, proofs, keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import marshmallow as ma
import sqlalchemy as sa
from flask import Response, jsonify, request, stream_with_context, url_for
from flask_smorest import Blueprint
from sqlalchemy.orm import Session

from service.audit import checkpoints, entries, export, merkle, reading, schemas
from service.audit import service as audit
from service.audit.models import AuditCheckpoint, AuditKey
from service.current import database
from service.door import current_caller, needs, public
from service.errors import FieldError, InvalidInput, NotFound
from service.http import request_id
from service.openapi import may_fail

blueprint = Blueprint("audit", __name__, url_prefix="/api/v1/audit", description="What was recorded, and proofs of it")

SEQ = f"<int(max={entries.LARGEST_SEQ}):seq>"
_MIME = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}


@blueprint.get("/entries")
@blueprint.arguments(schemas.EntryQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.EntryPage)
@may_fail(blueprint, 401, 403, 429)
@needs("audit:read")
def find(query: dict[str, Any]) -> Response:
    """Search the audit, newest first"""
    with database().reading() as session:
        items, following = entries.search(
            session,
            filters={name: query[name] for name in entries.FILTERS if name in query},
            since=query.get("since"),
            until=query.get("until"),
            cursor=query.get("cursor"),
            limit=query["limit"],
        )
    response = _json(schemas.page_text(items, following))
    if following:
        query_string = urlencode({**request.args.to_dict(), "cursor": following})
        response.headers["Link"] = f'<{url_for("audit.find")}?{query_string}>; rel="next"'
    return response


@blueprint.get(f"/entries/{SEQ}")
@blueprint.response(200, schemas.EntryWithTexts)
@may_fail(blueprint, 401, 403, 404, 429)
@needs("audit:read")
def read(seq: int) -> Response:
    """One entry, with the free text that was not erased"""
    with database().reading() as session:
        return _json(entries.read(session, seq))


@blueprint.get(f"/entries/{SEQ}/proof")
@blueprint.arguments(schemas.SizeQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.InclusionProof)
@may_fail(blueprint, 404, 429)
@public
def prove(query: dict[str, Any], seq: int) -> Response:
    """Prove that an entry is in a checkpoint

    Only hashes are shown. Compare `leaf` with the receipt, compute the root from it and `hashes`, and hold that against
    the signed note.
    """
    with database().reading() as session:
        checkpoint = _checkpoint(session, query.get("size"))
        if not 1 <= seq <= checkpoint.size:
            raise NotFound(f"Entry {seq:,} is not among the {checkpoint.size:,} of that checkpoint.")
        subtree = checkpoints.subtrees(session)
        leaf = subtree(0, seq - 1)
        hashes = merkle.inclusion_proof(seq - 1, checkpoint.size, subtree)
    return _uncached(
        {
            "seq": seq,
            "leaf": leaf.hex(),
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "hashes": [one.hex() for one in hashes],
            "note": checkpoint.note,
        }
    )


@blueprint.get("/consistency")
@blueprint.arguments(schemas.ConsistencyQuery, location="query", unknown=ma.RAISE)
@blueprint.response(200, schemas.ConsistencyProof)
@may_fail(blueprint, 404, 429)
@public
def prove_consistency(query: dict[str, Any]) -> Response:
    """Prove that the log of one checkpoint is the beginning of another's"""
    first, second = query["first"], query["second"]
    if first > second:
        raise InvalidInput([FieldError("/first", "first is larger than second", str(first), f"1 to {second}")])
    with database().reading() as session:
        roots = [_checkpoint(session, size).root.hex() for size in (first, second)]
        hashes = merkle.consistency_proof(first, second, checkpoints.subtrees(session))
    return _uncached(
        {
            "first": first,
            "second": second,
            "first_root": roots[0],
            "second_root": roots[1],
            "hashes": [one.hex() for one in hashes],
        }
    )


@blueprint.get("/checkpoint")
@blueprint.response(200, schemas.Checkpoint)
@may_fail(blueprint, 404, 429)
@public
def last_checkpoint() -> Response:
    """The last signed checkpoint

    With `Accept: text/plain` the signed note alone.
    """
    with database().reading() as session:
        checkpoint = _checkpoint(session, None)
    if request.accept_mimetypes.best_match(["application/json", "text/plain"]) == "text/plain":
        return _as(checkpoint.note, "text/plain; charset=utf-8")
    return _uncached(
        {
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "note": checkpoint.note,
            "made_at": audit.timestamp(checkpoint.made_at),
        }
    )


@blueprint.get("/keys")
@blueprint.response(200, schemas.Keys)
@may_fail(blueprint, 429)
@public
def keys() -> Response:
    """The public keys of the checkpoints

    Compare them with one that you know from elsewhere: whoever could forge a log could show other keys.
    """
    with database().reading() as session:
        found = session.execute(sa.select(AuditKey.vkey, AuditKey.note).order_by(AuditKey.place)).all()
    return _uncached(schemas.key_items(list(found)))


@blueprint.get("/export")
@blueprint.arguments(schemas.ExportQuery, location="query", unknown=ma.RAISE)
@blueprint.alt_response(200, description="Lines, in order of seq", content_type="application/jsonl")
@may_fail(blueprint, 401, 403, 429, 503)
@needs("audit:read")
def export_entries(query: dict[str, Any]) -> Response:
    """Export the log, to be kept and verified elsewhere

    JSON Lines (`seq`, `prev`, `hash`, `body`) or CSV, streamed in order. If it breaks off, ask again with `after` and
    the last number that arrived. That somebody exported is an entry itself, which the export does not have.
    """
    format = query["format"]
    with database().writing() as session:
        span = reading.span(session, since=query.get("since"), until=query.get("until"), after=query["after"])
        audit.append(
            session,
            action="audit.exported",
            actor=current_caller(),
            via=current_caller().via,
            subject=None,
            request={"after": span.after, "upto": span.upto, "format": format},
            request_id=request_id(),
        )

    def body() -> Iterator[str]:
        with database().reading() as session:
            yield from export.lines(session, span, format=format)

    name = f"trainmem-audit-{span.after + 1}-{span.upto}.{format}"
    response = Response(stream_with_context(body()), content_type=_MIME[format])
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    return response


def _checkpoint(session: Session, size: int | None) -> AuditCheckpoint:
    if size is None:
        if (last := checkpoints.latest(session)) is None:
            raise NotFound("There is no checkpoint yet; trainmem keeper or trainmem audit checkpoint makes them.")
        return last
    if (found := checkpoints.at(session, size)) is None:
        raise NotFound(f"There is no checkpoint of exactly {size:,} entries.")
    return found


def _json(text: str) -> Response:
    return _as(text, "application/json")


def _as(text: str, content_type: str) -> Response:
    return Response(text, content_type=content_type, headers={"Cache-Control": "no-store"})


def _uncached(document: dict[str, Any]) -> Response:
    response = jsonify(document)
    response.headers["Cache-Control"] = "no-store"
    return response
