"""Keeping what a job really used, once for each job."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import service as audit
from service.database import Database, alone
from service.door import Caller
from service.errors import Conflict, NotFound
from service.ids import public_id, uuid7
from service.sizings.models import Sizing
from service.sizings.observations.models import Observation
from service.sizings.observations.schemas import PEAKS

ACTION = "observation.made"


class Recorded(NamedTuple):
    """An observation as it is given out, and whether it was there before."""

    document: dict[str, Any]
    replayed: bool = False


def observe(
    database: Database, *, sizing_id: str, body: Mapping[str, Any], by: Caller, via: str, request_id: str
) -> Recorded:
    """Record an observation with its entry, or give back the same one of the same job.

    Raises NotFound, and Conflict if the job was observed with other numbers.
    """
    told = {**body, "peak": {name: body["peak"].get(name) for name in PEAKS}}
    fingerprint = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    with database.writing() as session:
        alone(session.connection(), f"observations on {sizing_id}")
        sizing = session.execute(sa.select(Sizing).where(Sizing.id == sizing_id)).scalar_one_or_none()
        if sizing is None:
            raise NotFound(f"No sizing has the id {sizing_id[:64]}.")
        same_job = sa.and_(Observation.sizing_id == sizing_id, Observation.job_id == told["job_id"])
        if before := session.execute(sa.select(Observation).where(same_job)).scalar_one_or_none():
            if before.fingerprint == fingerprint:
                return Recorded(_document(session, before), replayed=True)
            raise Conflict(
                f"The job {told['job_id']} was observed with other numbers on this sizing; it is {before.id}."
            )
        return Recorded(_record(session, sizing, told, by, via, request_id, fingerprint))


def of_sizing(session: Session, sizing_id: str) -> list[dict[str, Any]]:
    """The observations on a sizing, first to last. Raises NotFound."""
    if session.execute(sa.select(Sizing.id).where(Sizing.id == sizing_id)).one_or_none() is None:
        raise NotFound(f"No sizing has the id {sizing_id[:64]}.")
    query = sa.select(Observation).where(Observation.sizing_id == sizing_id)
    rows = session.execute(query.order_by(Observation.recorded_at, Observation.id))
    return [_document(session, row) for row in rows.scalars()]


def _record(
    session: Session,
    sizing: Sizing,
    told: Mapping[str, Any],
    by: Caller,
    via: str,
    request_id: str,
    fingerprint: str,
) -> dict[str, Any]:
    at, event_id, id = datetime.datetime.now(datetime.UTC), uuid7(), public_id("ob", uuid7())
    answer = json.loads(sizing.answer)
    peak = answer["per_gpu"]["peak"]
    values = {
        "id": id,
        "event_id": str(event_id),
        "sizing_id": sizing.id,
        "job_id": told["job_id"],
        "recorded_at": at,
        "asked_at": sizing.recorded_at,
        "observed_by": str(by),
        "outcome": told["outcome"],
        "gpus": told["gpus"],
        **told["peak"],
        "framework": told["framework"],
        "framework_version": told["framework_version"],
        "fingerprint": fingerprint,
        "model": sizing.model,
        "stack": answer["inputs"]["stack"]["value"],
        "engine": answer["engine_version"],
        "predicted": json.dumps(peak),
    }
    session.execute(sa.insert(Observation.__table__).values(values))
    receipt = audit.append(
        session,
        action=ACTION,
        actor=by,
        via=via,
        subject=sizing.id,
        request={"id": id, **told},
        result={"predicted": {name: peak[name] for name in PEAKS}},
        engine=answer["engine_version"],
        request_id=request_id,
        event_id=event_id,
        at=at,
    )
    return _told(values, receipt)


def _document(session: Session, row: Observation) -> dict[str, Any]:
    values = {column.name: getattr(row, column.name) for column in Observation.__table__.columns}
    return _told(values, audit.evidence(session, row.event_id).receipt)


def _told(values: Mapping[str, Any], receipt: audit.Receipt) -> dict[str, Any]:
    predicted = json.loads(values["predicted"])
    return {
        "id": values["id"],
        "sizing_id": values["sizing_id"],
        "job_id": values["job_id"],
        "recorded_at": audit.timestamp(values["recorded_at"]),
        "observed_by": values["observed_by"],
        "outcome": values["outcome"],
        "gpus": values["gpus"],
        "peak": {name: values[name] for name in PEAKS},
        "predicted": {name: predicted[name] for name in PEAKS},
        "framework": values["framework"],
        "framework_version": values["framework_version"],
        "audit": receipt._asdict(),
    }
