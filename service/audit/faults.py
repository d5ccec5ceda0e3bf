"""What is done when the log is found to be not as it was written: writing stops until somebody acknowledges it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import service as audit
from service.audit.models import AuditAcknowledgement, AuditFault, AuditHead
from service.audit.service import LOG
from service.audit.verification import Fault
from service.database import Database, alone
from service.ids import uuid7


def unknown(session: Session, faults: Sequence[Fault]) -> list[Fault]:
    """Those that nobody acknowledged."""
    known = set(session.execute(sa.select(AuditAcknowledgement.fingerprint)).scalars())
    return [fault for fault in faults if fault.fingerprint not in known]


def stop(database: Database, faults: Sequence[Fault]) -> None:
    """Keep the faults, and refuse to append from now on."""
    now = datetime.datetime.now(datetime.UTC)
    with database.writing() as session:
        alone(session.connection(), "audit faults")
        kept = set(session.execute(sa.select(AuditFault.fingerprint)).scalars())
        fresh = [fault for fault in faults if fault.fingerprint not in kept]
        if fresh:
            session.execute(sa.insert(AuditFault.__table__), [{**fault._asdict(), "found_at": now} for fault in fresh])
        session.execute(sa.update(AuditHead.__table__).where(AuditHead.log == LOG).values(stopped=True))


def standing(session: Session) -> list[Fault]:
    """The faults for which writing is stopped, the first one first."""
    found = session.execute(
        sa.select(AuditFault.seq, AuditFault.upto, AuditFault.what, AuditFault.fingerprint)
        .outerjoin(AuditAcknowledgement, AuditAcknowledgement.fingerprint == AuditFault.fingerprint)
        .where(AuditAcknowledgement.fingerprint.is_(None))
        .order_by(AuditFault.seq, AuditFault.found_at)
    )
    return [Fault(*row) for row in found]


def acknowledge(database: Database, *, by: audit.Actor, reason: str) -> list[Fault]:
    """Append that the standing faults are known, and let writing go on. Gives them; [] if nothing was stopped.

    Numbers that were once given out are not given out again: the log goes on behind the last that is missing.
    """
    with database.writing() as session:
        alone(session.connection(), "audit faults")
        faults = standing(session)
        if not faults:
            return []
        event_id = uuid7()
        behind = max(fault.upto for fault in faults)
        size = sa.case((AuditHead.size < behind, behind), else_=AuditHead.size)
        session.execute(sa.update(AuditHead.__table__).where(AuditHead.log == LOG).values(stopped=False, size=size))
        session.execute(
            sa.insert(AuditAcknowledgement.__table__),
            [{"fingerprint": fault.fingerprint, "event_id": str(event_id)} for fault in faults],
        )
        audit.append(
            session,
            action="audit.acknowledged",
            actor=by,
            via="cli",
            subject=None,
            result={"faults": [fault._asdict() for fault in faults]},
            free_text={"reason": reason},
            event_id=event_id,
        )
        return faults
