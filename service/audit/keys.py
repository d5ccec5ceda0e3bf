"""The key that signs checkpoints. It lies in a file, never in the database; the database has its public half."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service.audit import service as audit
from service.audit.models import AuditKey
from service.audit.notes import NotANote, Note, SigningKey, VerifierKey, new_key_text, parse
from service.database import Database, alone
from service.errors import SettingError
from service.ids import uuid7


def signing_key(database: Database, *, path: Path, name: str, by: audit.Actor) -> SigningKey:
    """The key in the file; made, and announced in the log, if there never was one.

    Raises SettingError if the file cannot be read, or is not the key that the log knows as its last.
    """
    with database.reading() as session:
        known = public_keys(session)
    if not path.exists():
        if known:
            raise SettingError(
                f"TRAINMEM_AUDIT_KEY: {path} is gone, and checkpoints were signed by {known[-1]}. Restore the file;"
                " if it is lost for good, trainmem audit new-key --lost begins with another one."
            )
        with contextlib.suppress(FileExistsError):  # another process was first
            _write(path, SigningKey.generate(name))
    key = read(path)
    if key.verifier not in known:
        announce(database, key.verifier, note=None, by=by, only_as_first=True)
    return key


def read(path: Path) -> SigningKey:
    """The private key in a file. Raises SettingError."""
    try:
        return SigningKey.parse(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise SettingError(f"TRAINMEM_AUDIT_KEY: {path} cannot be read: {error}") from error


def renew(database: Database, *, path: Path, name: str, by: audit.Actor, lost: bool = False) -> SigningKey:
    """Replace the key: the old one signs the new one, and stays beside it as `<file>.<key id>`.

    `lost` if the old one is gone: then nothing vouches for the new one, and whoever verifies has to be told.
    """
    new = SigningKey.generate(name)
    note = None
    if not lost:
        old = read(path)
        text = new_key_text(old.verifier, new.verifier)
        note = str(Note(text, (old.sign(text), new.sign(text))))
        path.rename(path.with_name(f"{path.name}.{old.verifier.id.hex()}"))
    elif path.exists():
        raise SettingError(f"TRAINMEM_AUDIT_KEY: {path} is there, so the key is not lost.")
    _write(path, new)
    announce(database, new.verifier, note=note, by=by)
    return new


def announce(
    database: Database, key: VerifierKey, *, note: str | None, by: audit.Actor, only_as_first: bool = False
) -> None:
    """Append that from now on `key` signs. Does nothing if the log knows it.

    Raises SettingError if it should be the first and is not.
    """
    with database.writing() as session:
        alone(session.connection(), "audit keys")
        known = public_keys(session)
        if key in known:
            return
        if only_as_first and known:
            raise SettingError(
                f"TRAINMEM_AUDIT_KEY: the file has the key {key}, but the log's last key is {known[-1]}."
            )
        event_id = uuid7()
        values = {"vkey": str(key), "place": len(known) + 1, "event_id": str(event_id), "note": note}
        session.execute(sa.insert(AuditKey.__table__).values(values))
        audit.append(
            session,
            action="audit.key",
            actor=by,
            via="cli",
            subject=None,
            request={"vkey": str(key), "introduced_by": note},
            event_id=event_id,
        )


def public_keys(session: Session) -> list[VerifierKey]:
    """Every key that ever signed, in order. The database says so; whoever must be sure pins one from elsewhere."""
    found = session.execute(sa.select(AuditKey.vkey).order_by(AuditKey.place)).scalars()
    return [VerifierKey.parse(text) for text in found]


def before_loss(session: Session) -> set[VerifierKey]:
    """The keys that came before one that nothing vouches for, because they were lost. Their notes still stand."""
    found = session.execute(sa.select(AuditKey.vkey, AuditKey.note).order_by(AuditKey.place)).all()
    alone = [place for place, row in enumerate(found) if row.note is None]
    return {VerifierKey.parse(row.vkey) for row in found[: alone[-1] if alone else 0]}


def introductions(session: Session) -> Sequence[Note]:
    """The notes in which a key introduced the next."""
    found = session.execute(sa.select(AuditKey.note).where(AuditKey.note.is_not(None)).order_by(AuditKey.place))
    notes = []
    for text in found.scalars():
        try:
            notes.append(parse(text or ""))
        except NotANote:
            continue  # tampered with; the key it introduced is then not trusted
    return notes


def _write(path: Path, key: SigningKey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{key}\n")
        file.flush()
        os.fsync(file.fileno())
