"""What every HTTP answer has in common: a request id, limits on bodies, problem documents, headers, a log line."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import sqlalchemy as sa
import structlog
from flask import Flask, Response, g, json, render_template, request
from werkzeug.exceptions import HTTPException

from service.errors import (
    BodyTooLarge,
    FieldError,
    InvalidInput,
    MalformedBody,
    NotFound,
    ServiceError,
    TrainmemError,
    Unavailable,
    Unexpected,
    WrongContentType,
    problem_document,
)

LARGEST_BODY_BYTES = 256 * 1024
PROBLEM_TYPE = "application/problem+json"

_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_NO_DATABASE = (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

log = structlog.get_logger(__name__)


def register(app: Flask) -> None:
    """Give `app` the handlers of this module."""
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY_BYTES
    app.before_request(_start)
    app.before_request(_check_address)
    app.before_request(_check_body)
    app.after_request(_finish)
    for kind in (TrainmemError, HTTPException, *_NO_DATABASE, Exception):
        app.register_error_handler(kind, handle)


def request_id() -> str:
    """The id of the current request: the caller's if it sent a harmless one, else a new one."""
    return str(g.request_id)


def _start() -> None:
    given = request.headers.get("X-Request-Id", "")
    g.request_id = given if _SAFE_ID.fullmatch(given) else uuid.uuid4().hex
    g.started_s = time.perf_counter()
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=g.request_id)


def _check_address() -> None:
    """Refuse what no address of ours has: U+0000, which a database cannot compare, and a parameter given twice."""
    if "\0" in request.path:
        raise NotFound("No address has the character U+0000.")
    if any("\0" in name + text for name, text in request.args.items(multi=True)):
        raise MalformedBody("The query has the character U+0000, which no name or text needs.")
    if twice := [name for name, texts in request.args.lists() if len(texts) > 1]:
        raise InvalidInput(
            FieldError(f"/{name}", f"{name} is given twice", " and ".join(request.args.getlist(name)), "each key once")
            for name in twice
        )


def _check_body() -> None:
    """Refuse a body that is too large, or in the API not JSON, before anything reads it."""
    if request.routing_exception is not None:
        return  # 404 and 405 say more
    if (request.content_length or 0) > LARGEST_BODY_BYTES:
        raise _too_large()
    if is_api() and request.method in ("POST", "PUT", "PATCH") and not request.is_json:
        given = request.mimetype or "no content type"
        raise WrongContentType(f"The body is declared as {given}; send Content-Type: application/json.")


def _finish(response: Response) -> Response:
    response.headers["X-Request-Id"] = g.get("request_id", "")
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    if response.status_code >= 400 or request.method not in ("GET", "HEAD"):
        response.headers.setdefault("Cache-Control", "no-store")
    took_ms = round((time.perf_counter() - g.get("started_s", time.perf_counter())) * 1000, 1)
    route = request.url_rule.rule if request.url_rule else request.path[:200]
    quiet = request.path in ("/healthz", "/readyz") and response.status_code < 400
    level = log.debug if quiet else log.info
    level("request", method=request.method, route=route, status=response.status_code, took_ms=took_ms)
    return response


def is_api() -> bool:
    """Whether the current request is one of a program, which wants JSON, or of a person, who wants a page."""
    return request.path.startswith("/api/")


def handle(error: Exception) -> Response:
    """Any exception as a problem document, or as a page for people."""
    if isinstance(error, HTTPException):
        return _http_exception(error)
    if isinstance(error, _NO_DATABASE):
        log.error("database_unavailable", error=str(error.orig if isinstance(error, sa.exc.DBAPIError) else error))
        error = Unavailable("The database does not answer; nothing was recorded. Try again in a moment.")
    if not isinstance(error, (InvalidInput, ServiceError)):
        log.error("unexpected_error", exc_info=error)
        error = Unexpected(f"Something went wrong that should not have. The log has the cause under {request_id()}.")
    document = problem_document(error, instance=request.path, request_id=g.get("request_id"))
    headers = error.headers if isinstance(error, ServiceError) else {}
    return problem_response(document, headers)


def problem_response(document: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """A problem document as the answer: JSON under /api, a page elsewhere unless the caller asks for JSON."""
    if is_api() or not request.accept_mimetypes.accept_html or request.accept_mimetypes.best == "application/json":
        body, kind = json.dumps(document), PROBLEM_TYPE
    else:
        body, kind = render_template("problem.html", problem=document), "text/html"
    response = Response(body, status=document["status"], content_type=kind)
    response.headers.update(headers or {})
    return response


def _http_exception(error: HTTPException) -> Response:
    """Werkzeug's own errors (404, 405, 413 …), keeping the headers it gives them, such as Allow."""
    if error.code == 413:
        return handle(_too_large())
    given = error.get_response()
    if given.status_code < 400:
        return Response(given.get_data(), given.status_code, dict(given.headers))
    headers = {name: value for name, value in given.headers if name not in ("Content-Type", "Content-Length")}
    return problem_response(_plain_document(given.status_code, error.name, error.description or ""), headers)


def _plain_document(status: int, title: str, detail: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "request_id": g.get("request_id"),
        "errors": [],
    }


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"A body may have {LARGEST_BODY_BYTES:,} bytes at most.")
