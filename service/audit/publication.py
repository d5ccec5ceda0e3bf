"""Putting checkpoints where whoever owns the database cannot change them: a file, a directory, a Slack channel.

Each is published once for each place; what failed is tried again the next time.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import sqlalchemy as sa
import structlog
from sqlalchemy.dialects import postgresql, sqlite

from service.audit import keys
from service.audit.checkpoints import latest
from service.audit.models import AuditPublication
from service.audit.notes import NotANote, Note, parse_all
from service.database import Database
from service.errors import SettingError

WEBHOOK_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)

Put = Callable[[int, str], None]


def published(path: Path | None) -> list[Note]:
    """The notes in the file or directory. Raises SettingError if something there is no note."""
    if path is None or not path.exists():
        return []
    try:
        files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
        return [note for file in files for note in parse_all(file.read_text(encoding="utf-8")) if note]
    except (OSError, NotANote, UnicodeDecodeError) as error:
        raise SettingError(f"The signed notes in {path} cannot be read: {error}") from error


def publish(database: Database, *, path: Path | None, webhook_url: str | None) -> list[str]:
    """Put the last checkpoint where it is not yet; gives what failed, as sentences."""
    with database.reading() as session:
        last = latest(session)
        introductions = keys.introductions(session)
    if last is None:
        return []
    places: list[tuple[str, str, Put]] = []
    if path is not None:
        places.append(("file", str(path), lambda size, note: _to_path(path, size, note, introductions)))
    if webhook_url:
        places.append(("webhook", webhook_url, lambda size, note: _to_webhook(webhook_url, size, note)))
    failed = []
    for kind, address, put in places:
        place = hashlib.sha256(f"{kind} {address}".encode()).hexdigest()
        if _is_there(database, last.size, place) and (kind != "file" or Path(address).exists()):
            continue
        try:
            put(last.size, last.note)
        except (OSError, httpx.HTTPError) as error:
            log.error("checkpoint_not_published", place=kind, error=type(error).__name__)
            failed.append(f"the checkpoint of {last.size:,} entries could not be put to the {kind}: {error}")
        else:
            _remember(database, last.size, place)
    return failed


def _to_path(path: Path, size: int, note: str, introductions: Sequence[Note]) -> None:
    """Append to the file, or put a file of its own into the directory; on disk before it counts."""
    introduced = [str(one) for one in introductions]
    if path.is_dir():
        for name, text in [
            *((f"key-{n:03}.txt", text) for n, text in enumerate(introduced)),
            (f"{size:012}.txt", note),
        ]:
            if not (path / name).exists():
                _write(path / name, text, "x")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    for text in (*introduced, note):
        if text not in there:
            _write(path, f"{text}\n", "a")


def _write(path: Path, text: str, mode: str) -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _to_webhook(url: str, size: int, note: str) -> None:
    text = f"Checkpoint of the trainmem audit, {size:,} entries:\n```\n{note}```"
    httpx.post(url, json={"text": text}, timeout=WEBHOOK_TIMEOUT_S).raise_for_status()


def _is_there(database: Database, size: int, place: str) -> bool:
    with database.reading() as session:
        query = sa.select(AuditPublication.size).where(AuditPublication.size == size, AuditPublication.place == place)
        return session.execute(query).one_or_none() is not None


def _remember(database: Database, size: int, place: str) -> None:
    values = {"size": size, "place": place, "published_at": datetime.datetime.now(datetime.UTC)}
    with database.writing() as session:
        dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
        session.execute(dialect.insert(AuditPublication.__table__).values(values).on_conflict_do_nothing())
