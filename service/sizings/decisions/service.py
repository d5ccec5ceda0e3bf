"""Deciding on a sizing, and telling what was decided."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service import cursors
from service.audit import service as audit
from service.database import Database, alone
from service.door import Caller, Identity
from service.errors import Conflict, Forbidden, KeyReused, NotFound
from service.ids import public_id, uuid7
from service.settings import Settings
from service.sizings.decisions.models import Decision
from service.sizings.models import Sizing

ACTION = "decision.made"


class Recorded(NamedTuple):
    """A decision as it is given out, and whether it was there before."""

    document: dict[str, Any]
    replayed: bool = False


def check_policy(session: Session, *, sizing_id: str, who: Identity, settings: Settings) -> None:
    """Raises Forbidden if `who` may not decide on this sizing, NotFound if there is none.

    Somebody for whom a token speaks, or whom a proxy names, has to stand in TRAINMEM_DECIDERS, alone or by a group.
    """
    sizing = _sizing(session, sizing_id)
    caller = who.caller
    listed = {str(caller), *who.groups} & (settings.deciders | settings.administrators)
    if (who.acts_for_other or caller.kind == "user") and not listed:
        raise Forbidden(f"{caller} may not decide; TRAINMEM_DECIDERS names who may.")
    if caller.team and sizing.team and caller.team != sizing.team and caller.kind == "slack":
        raise Forbidden(f"{caller} may not decide on a sizing of another workspace.")
    if str(caller) == sizing.requester and caller.kind != "address" and not settings.own_decisions:
        raise Forbidden(f"{caller} asked for this sizing, so somebody else decides on it.")


def decide(
    database: Database,
    *,
    sizing_id: str,
    body: Mapping[str, Any],
    by: Caller,
    via: str,
    request_id: str,
    key: str | None = None,
) -> Recorded:
    """Record a decision with its entry, or give back the one that this key, or the same caller just now, made.

    Raises NotFound, Conflict if there is nothing to withdraw, KeyReused if the key was used for another decision.
    """
    fingerprint = _digest(json.dumps([sizing_id, sorted(body.items())]))
    request_key = None if key is None else _digest(f"{by}\n{key}")
    with database.writing() as session:
        alone(session.connection(), f"decisions on {sizing_id}")
        sizing = _sizing(session, sizing_id)
        if request_key and (before := _by(session, Decision.request_key == request_key)):
            if before.fingerprint != fingerprint:
                raise KeyReused("This Idempotency-Key was sent before with another decision; use a new key.")
            return Recorded(_document(session, before), replayed=True)
        last = _by(session, Decision.sizing_id == sizing_id)
        if last and (last.fingerprint, last.decided_by) == (fingerprint, str(by)):
            return Recorded(_document(session, last), replayed=True)
        if body["decision"] == "withdraw" and (last is None or last.decision == "withdraw"):
            raise Conflict("There is no decision on this sizing that could be withdrawn.")
        return Recorded(_record(session, sizing, last, body, by, via, request_id, request_key, fingerprint))


def of_sizing(session: Session, sizing_id: str) -> list[dict[str, Any]]:
    """The decisions on a sizing, first to last. Raises NotFound."""
    _sizing(session, sizing_id)
    rows = session.execute(sa.select(Decision).where(Decision.sizing_id == sizing_id).order_by(Decision.place))
    return [_document(session, row) for row in rows.scalars()]


def news(
    session: Session,
    *,
    kind: str | None = None,
    since: datetime.datetime | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> tuple[list[dict[str, Any]], str]:
    """Decisions in the order of the log behind `cursor`, and the cursor behind the last; nothing is ever skipped."""
    after = audit.place_before(session, since) if cursor is None else _after(cursor)
    place = audit.places(ACTION, after=after)
    query = (
        sa.select(place.c.seq, Decision, Sizing.requester, Sizing.model, Sizing.gpu, Sizing.gpus, Sizing.verdict)
        .join_from(place, Decision, Decision.event_id == place.c.event_id)
        .join(Sizing, Sizing.id == Decision.sizing_id)
        .order_by(place.c.seq)
        .limit(limit)
    )
    if kind is not None:
        query = query.where(Sizing.requester.startswith(f"{kind}:", autoescape=True))
    items = []
    for row in session.execute(query):
        after = row.seq
        told = {"id": row.Decision.sizing_id, "requester": row.requester, "model": row.model, "gpu": row.gpu}
        told |= {"gpus": row.gpus, "verdict": row.verdict}
        items.append({**_document(session, row.Decision), "sizing": told})
    return items, cursors.encode(after)


def _record(
    session: Session,
    sizing: Any,
    last: Decision | None,
    body: Mapping[str, Any],
    by: Caller,
    via: str,
    request_id: str,
    request_key: str | None,
    fingerprint: str,
) -> dict[str, Any]:
    at, event_id, id = datetime.datetime.now(datetime.UTC), uuid7(), public_id("dc", uuid7())
    granting = body["decision"] in ("approve", "override")
    values = {
        "id": id,
        "event_id": str(event_id),
        "sizing_id": sizing.id,
        "place": last.place + 1 if last else 1,
        "recorded_at": at,
        "asked_at": sizing.recorded_at,
        "decided_by": str(by),
        "decision": body["decision"],
        "gpus_granted": (body["gpus_granted"] or sizing.gpus) if granting else None,
        "gpu": (body["gpu"] or sizing.gpu) if granting else None,
        "request_key": request_key,
        "fingerprint": fingerprint,
    }
    session.execute(sa.insert(Decision.__table__).values(values))
    told = {name: values[name] for name in ("decision", "gpus_granted", "gpu", "place")}
    receipt = audit.append(
        session,
        action=ACTION,
        actor=by,
        via=via,
        subject=sizing.id,
        request={"id": id, **told},
        result={"requester": sizing.requester, "asked_gpus": sizing.gpus, "asked_gpu": sizing.gpu},
        free_text={} if body["reason"] is None else {"reason": body["reason"]},
        request_id=request_id,
        event_id=event_id,
        at=at,
    )
    return _told(values, body["reason"], receipt)


def _document(session: Session, row: Decision) -> dict[str, Any]:
    kept = audit.evidence(session, row.event_id)
    values = {column.name: getattr(row, column.name) for column in Decision.__table__.columns}
    return _told(values, kept.texts.get("reason"), kept.receipt)


def _told(values: Mapping[str, Any], reason: str | None, receipt: audit.Receipt) -> dict[str, Any]:
    return {
        "id": values["id"],
        "sizing_id": values["sizing_id"],
        "place": values["place"],
        "recorded_at": audit.timestamp(values["recorded_at"]),
        "decision": values["decision"],
        "gpus_granted": values["gpus_granted"],
        "gpu": values["gpu"],
        "reason": reason,
        "decided_by": values["decided_by"],
        "audit": receipt._asdict(),
    }


def _sizing(session: Session, id: str) -> Any:
    columns = (Sizing.id, Sizing.requester, Sizing.team, Sizing.recorded_at, Sizing.gpus, Sizing.gpu)
    row = session.execute(sa.select(*columns).where(Sizing.id == id)).one_or_none()
    if row is None:
        raise NotFound(f"No sizing has the id {id[:64]}.")
    return row


def _by(session: Session, which: sa.ColumnElement[bool]) -> Decision | None:
    return session.execute(sa.select(Decision).where(which).order_by(Decision.place.desc()).limit(1)).scalar()


def _after(cursor: str) -> int:
    (seq,) = cursors.decode(cursor, int)
    if not 0 <= seq < 2**63:
        raise cursors.unreadable(cursor)
    return int(seq)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
