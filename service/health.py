"""Whether the process lives (/healthz) and whether it can do its work (/readyz)."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
import structlog
from flask import Blueprint, Response, jsonify
from sqlalchemy.orm import Session

from service import migration
from service.audit import faults, reading
from service.catalog.models import CatalogState
from service.current import database

blueprint = Blueprint("health", __name__)
log = structlog.get_logger(__name__)


@blueprint.get("/healthz")
def healthz() -> Response:
    """The process answers."""
    return _uncached(jsonify({"status": "ok"}))


@blueprint.get("/readyz")
def readyz() -> Response:
    """Database, schema and catalogue are as this release needs them; 503 names what is not."""
    checks: dict[str, str] = {}
    try:
        with database().reading() as session:
            session.connection()
            checks["database"] = "ok"
            for name, check in _CHECKS.items():
                checks[name] = check(session)
    except (sa.exc.SQLAlchemyError, OSError) as error:
        log.error("not_ready", error=str(error))
        checks["database" if not checks else name] = "does not answer"
    ready = all(state == "ok" for state in checks.values())
    response = jsonify({"status": "ready" if ready else "not ready", "checks": checks})
    response.status_code = 200 if ready else 503
    return _uncached(response)


def _schema(session: Session) -> str:
    at, needed = migration.revision_of(session.connection()), migration.newest_revision()
    return "ok" if at == needed else f"at revision {at}, this release needs {needed}; run trainmem migrate"


def _catalog(session: Session) -> str:
    loaded = session.execute(sa.select(sa.func.count()).select_from(CatalogState)).scalar_one()
    return "ok" if loaded else "empty; run trainmem migrate"


def _audit(session: Session) -> str:
    """Loud when the log was tampered with: nothing is recorded then, though reading goes on."""
    if not reading.end(session).stopped:
        return "ok"
    found = faults.standing(session)
    first = f"{found[0]}, " if found else ""
    return f"{first}nothing is recorded until an administrator runs trainmem audit acknowledge"


_CHECKS: dict[str, Callable[[Session], str]] = {"schema": _schema, "catalog": _catalog, "audit": _audit}


def _uncached(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
