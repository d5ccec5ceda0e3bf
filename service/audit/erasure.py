"""Erasing what a person typed. The entries stay, and the chain stays whole: they only ever had a salted digest."""

from __future__ import annotations

import sqlalchemy as sa

from service.audit import service as audit
from service.audit.models import AuditEntry, AuditText
from service.database import Database

AT_ONCE = 500


def erase(database: Database, *, subject: str, by: audit.Actor) -> int:
    """Delete the texts of the entries about `subject`, by the actor `subject`, or numbered so. Gives how many.

    What was erased is an entry: of which entries, not what. SQLite overwrites the bytes in its file.
    """
    which = [AuditEntry.subject == subject, AuditEntry.actor == subject]
    if subject.isascii() and subject.isdigit() and len(subject) < 19:
        which.append(AuditEntry.seq == int(subject))
    with database.writing() as session:
        if session.connection().dialect.name == "sqlite":
            session.connection().exec_driver_sql("PRAGMA secure_delete=ON")
        found = session.execute(
            sa.select(AuditEntry.seq, AuditEntry.event_id)
            .join(AuditText, AuditText.event_id == AuditEntry.event_id)
            .where(sa.or_(*which))
            .order_by(AuditEntry.seq)
            .distinct()
        ).all()
        erased = 0
        for start in range(0, len(found), AT_ONCE):
            ids = [row.event_id for row in found[start : start + AT_ONCE]]
            gone = sa.delete(AuditText.__table__).where(AuditText.event_id.in_(ids)).returning(AuditText.name)
            erased += len(session.execute(gone).all())
        if erased:
            audit.append(
                session,
                action="text.erased",
                actor=by,
                via="cli",
                subject=subject if len(subject) <= 100 else None,
                request={"entries": [row.seq for row in found]},
                result={"texts": erased},
            )
        return erased
