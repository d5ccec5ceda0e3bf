"""Pages: the calculator at /, a recorded sizing at /sizings/<id>, the API's documentation at /docs."""

from __future__ import annotations

import json
from typing import Any

from flask import Blueprint, Response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from service import __version__
from service.catalog.views import current_catalog
from service.current import database, settings
from service.door import current_caller, needs, public
from service.errors import Forbidden, InvalidInput, problem_kinds
from service.http import request_id
from service.requests.keys import KEYS
from service.requests.schemas import load_text_request
from service.sizings import service as sizings
from service.sizings.answer import answer
from service.web import present, problems

blueprint = Blueprint("web", __name__, template_folder="templates", static_folder="static", static_url_path="/static")

EXAMPLES = (
    "70B seq=8k mb=2 gpu=H100",
    "8B seq=8k 8xH100 zero=3",
    "llama-3.1-405b seq=8k gpu=H200",
    "qlora=16 70B seq=4k 1xA100-80G",
    "mixtral-8x7b seq=4k tp=2 ep=4 dp=8",
)
#: The keys that the form has fields for, in groups; every other key can be said in a command.
FIELDS = (
    ("The run", ("model", "sequence_length", "micro_batch", "global_batch", "gpu", "gpus")),
    ("How it trains", ("method", "precision", "optimizer", "stack", "attention", "recompute")),
    ("Layout (empty: recommend one)", ("tp", "pp", "cp", "ep", "dp", "shard")),
)


@blueprint.app_context_processor
def _for_every_page() -> dict[str, Any]:
    return {
        "version": __version__,
        "gib": present.gib,
        "gb": present.gb,
        "layout_words": present.layout_words,
        "shown": present.shown,
        "VERDICTS": present.VERDICTS,
        "MOMENTS": present.MOMENTS,
    }


@blueprint.get("/")
@public
def calculator() -> str | tuple[str, int]:
    """The form, and below it the answer to what the address asks; nothing is recorded."""
    asked = problems.asked(request.args)
    if not asked:
        return render_template("calculator.html", **_form({}))
    try:
        sizing = answer(load_text_request(asked), current_catalog())
    except InvalidInput as error:
        return _refused(asked, error)
    return render_template("calculator.html", sizing=sizing, **_form(asked), **_tables(sizing))


@blueprint.post("/sizings")
@needs("size", what="sizing")
def record() -> BaseResponse | tuple[str, int]:
    """Record what the form asks and go to its page."""
    _same_site_only()
    asked = problems.asked(request.form)
    who = current_caller()
    try:
        made = sizings.create(
            database(),
            request=load_text_request(asked),
            catalog=current_catalog(),
            asking=sizings.Asking(caller=who, request_id=request_id(), via="web"),
        )
    except InvalidInput as error:
        return _refused(asked, error)
    return redirect(url_for("web.sizing", id=made.id), code=303)


@blueprint.get("/sizings/<id>")
@needs("size", "audit:read")
def sizing(id: str) -> str:
    """A recorded sizing as a page; its address can be kept."""
    with database().reading() as session:
        recorded = json.loads(sizings.read(session, id).document)
    return render_template("sizing.html", sizing=recorded, public_url=_public_url(), **_tables(recorded))


@blueprint.get("/docs")
def docs() -> Response:
    """The API, browsable, on vendored assets."""
    response = Response(render_template("docs.html"))
    # Swagger UI sets style attributes and has its icons as data.
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self';"
        " connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return response


@blueprint.get("/docs/problems")
def problem_types() -> str:
    """What each kind of problem document means."""
    return render_template("problem_types.html", kinds=problem_kinds())


def _form(asked: dict[str, str]) -> dict[str, Any]:
    groups = [(title, [KEYS[name] for name in names]) for title, names in FIELDS]
    return {"asked": asked, "groups": groups, "examples": EXAMPLES, "public_url": _public_url(), "errors": {}}


def _refused(asked: dict[str, str], error: InvalidInput) -> tuple[str, int]:
    shown = {name for _, names in FIELDS for name in names}
    found = problems.by_field(error)
    elsewhere = [one for name, errors in found.items() if name not in shown for one in errors]
    told: dict[str, Any] = {"errors": found, "told": error.errors, "elsewhere": elsewhere}
    if "command" in asked:
        told["marked"] = problems.marked(asked["command"], error)
        told["repairs"] = problems.repairs(asked["command"], error)
    return render_template("calculator.html", **{**_form(asked), **told}), 422


def _tables(sizing: dict[str, Any]) -> dict[str, Any]:
    return {
        "rows": present.term_rows(sizing),
        "bar": present.bar(sizing),
        "inputs": list(present.inputs(sizing)),
    }


def _public_url() -> str:
    return (settings().public_url or request.url_root).rstrip("/")


def _same_site_only() -> None:
    """A form on somebody else's page must not record in a visitor's name; browsers say where a form stands."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site not in (None, "same-origin", "none") or (origin is not None and origin != request.host_url.rstrip("/")):
        raise Forbidden("This form was sent from another site.")
