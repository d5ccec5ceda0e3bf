"""The keeper: a loop in a process of its own that verifies, signs and publishes every few minutes."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
import structlog

from service.audit import keys, publication
from service.audit import service as audit
from service.audit.checkpoints import NotSigned, make
from service.audit.notes import NotANote, Note
from service.database import Database
from service.errors import SettingError, TrainmemError
from service.settings import Settings

log = structlog.get_logger(__name__)


class Kept(NamedTuple):
    """What one round did: the new checkpoint, None if nothing changed, and what could not be published."""

    note: Note | None
    failed: list[str]


def keep(database: Database, settings: Settings, *, by: audit.Actor) -> Kept:
    """One round. Raises NotSigned if the log is not what was written, SettingError about key or path."""
    path = Path(settings.checkpoint_path) if settings.checkpoint_path else None
    key = keys.signing_key(database, path=Path(settings.audit_key), name=settings.audit_origin, by=by)
    try:
        note = make(database, key, published=publication.published(path))
    except NotANote as error:
        raise SettingError(f"The signed notes in {path} cannot be believed: {error}") from error
    return Kept(note, publication.publish(database, path=path, webhook_url=settings.checkpoint_webhook_url or None))


def run(settings: Settings, *, by: audit.Actor) -> None:
    """Keep until SIGTERM or SIGINT; the last round is on the way out. An error is logged and the loop goes on."""
    leaving = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leaving.set())
    with Database(settings) as database:
        while True:
            last = leaving.is_set()
            _round(database, settings, by)
            if last:
                return
            leaving.wait(settings.checkpoint_every_s)


def _round(database: Database, settings: Settings, by: audit.Actor) -> None:
    try:
        kept = keep(database, settings, by=by)
    except NotSigned as error:
        log.critical("audit_fault", detail=str(error), first_seq=error.faults[0].seq, faults=len(error.faults))
    except (TrainmemError, sa.exc.SQLAlchemyError, OSError) as error:
        log.error("checkpoint_failed", error=str(error))
    else:
        if kept.note is not None:
            log.info("checkpoint", size=int(kept.note.text.split("\n")[1]))
