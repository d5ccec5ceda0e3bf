"""The one use case: resolve, size, record; and reading recorded sizings back."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import service as audit
from service.catalog.facts import Catalog
from service.database import Database
from service.door import Caller
from service.errors import Conflict, NotFound
from service.ids import public_id, uuid7
from service.requests.request import SizingRequest
from service.sizings import documents, idempotency
from service.sizings.answer import answer
from service.sizings.models import Sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Under whose name, which request id and which Idempotency-Key a question is recorded."""

    caller: Caller
    request_id: str
    via: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A sizing as it is given out: `document` is JSON text, the same whenever it is read."""

    id: str
    document: str
    replayed: bool = False


def create(database: Database, *, request: SizingRequest, catalog: Catalog, asking: Asking) -> Recorded:
    """Size and record: the row, its audit entry and the key in one transaction, or nothing.

    Raises InvalidInput if the question cannot be answered, KeyReused or Conflict about the key.
    """
    fingerprint = documents.digest(json.dumps(documents.plain(request.as_asked), sort_keys=True))
    if asking.key and (before := _replay(database, asking, asking.key, fingerprint)):
        return before
    answered = answer(request, catalog)  # outside the transaction: it may take a while
    with database.writing() as session:
        number = uuid7()
        id = public_id("sz", number)
        claimed = not asking.key or idempotency.claim(
            session, caller=str(asking.caller), key=asking.key, fingerprint=fingerprint, sizing_id=id
        )
        if claimed:
            return _record(session, id=id, request=request, answered=answered, asking=asking)
    if asking.key and (before := _replay(database, asking, asking.key, fingerprint)):
        return before
    raise Conflict("A request with this Idempotency-Key was recorded just now and is gone again; send it once more.")


def read(session: Session, id: str) -> Recorded:
    """A recorded sizing, byte for byte as it was first given. Raises NotFound."""
    row = session.execute(sa.select(Sizing).where(Sizing.id == id)).scalar_one_or_none()
    if row is None:
        raise NotFound(f"No sizing has the id {id[:64]}.")
    kept = audit.evidence(session, row.event_id)
    return Recorded(
        id=row.id,
        document=documents.recorded(
            id=row.id,
            recorded_at=audit.timestamp(row.recorded_at),
            receipt=kept.receipt,
            asked=kept.texts or json.loads(row.request),
            answer=row.answer,
        ),
    )


def _replay(database: Database, asking: Asking, key: str, fingerprint: str) -> Recorded | None:
    with database.reading() as session:
        id = idempotency.recorded_under(session, caller=str(asking.caller), key=key, fingerprint=fingerprint)
        if id is None:
            return None
        return Recorded(id=id, document=read(session, id).document, replayed=True)


def _record(
    session: Session, *, id: str, request: SizingRequest, answered: Mapping[str, Any], asking: Asking
) -> Recorded:
    at, event_id = datetime.datetime.now(datetime.UTC), uuid7()
    meant, text = documents.question(request), documents.answer_text(answered)
    session.execute(
        sa.insert(Sizing.__table__).values(
            id=id,
            event_id=str(event_id),
            recorded_at=at,
            requester=str(asking.caller),
            team=asking.caller.team,
            via=asking.via,
            request=documents.dumps(meant),
            answer=text,
            **_search_columns(answered),
        )
    )
    free_text = {} if request.command is None else {"command": request.command}
    receipt = audit.append(
        session,
        action="sizing.created",
        actor=asking.caller,
        via=asking.via,
        subject=id,
        request=meant,
        result=_totals(answered, text),
        free_text=free_text,
        engine=answered["engine_version"],
        catalog=answered["catalog_digest"],
        request_id=asking.request_id,
        event_id=event_id,
        at=at,
    )
    document = documents.recorded(
        id=id, recorded_at=audit.timestamp(at), receipt=receipt, asked=free_text or meant, answer=text
    )
    return Recorded(id=id, document=document)


def _search_columns(answered: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": (answered["model"]["id"] or "custom")[:100],
        "gpu": (answered["gpu"]["id"] or "custom")[:100],
        "gpus": answered["per_gpu"]["gpus"],
        "verdict": answered["verdict"]["code"],
        "verdict_text": answered["verdict"]["text"],
    }


def _totals(answered: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What the entry keeps of the answer: enough to be read alone, and a digest of all the rest."""
    per_gpu = answered["per_gpu"]
    return {
        "answer_sha256": documents.digest(text),
        "model": answered["model"]["id"],
        "parameters": answered["model"]["parameters"],
        "gpu": answered["gpu"]["id"],
        "gpus": per_gpu["gpus"],
        "layout": documents.plain(per_gpu["layout"]),
        "peak_bytes": per_gpu["peak"]["device_bytes"],
        "headroom_bytes": per_gpu["headroom_bytes"],
        "verdict": answered["verdict"]["code"],
    }
