"""Making checkpoints: verify everything, compare with what was signed and published before, and only then sign."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.audit import faults, keys, reading
from service.audit.merkle import HASH_BYTES, TILE_WIDTH, Subtree, subtree_in_tiles
from service.audit.models import AuditCheckpoint, AuditTile
from service.audit.notes import Checkpoint, NotANote, Note, SigningKey, VerifierKey, by_size, parse, trusted
from service.audit.verification import Fault, Verifier
from service.database import Database
from service.errors import TrainmemError

_TILES_AT_ONCE = 32
_BAD_NOTE = "has a checkpoint whose signature does not hold"


class NotSigned(TrainmemError):
    """The log is not what it was, so it is not signed. Only operators' commands meet this."""

    def __init__(self, found: list[Fault]) -> None:
        super().__init__(f"The log is not what was written, so it is not signed: {found[0]}.")
        self.faults = found


class Verified(NamedTuple):
    """What verifying the database found."""

    size: int
    root: bytes | None
    faults: list[Fault]
    checkpoints: Mapping[int, Checkpoint]
    tiles: dict[tuple[int, int], bytes]


def verify(
    session: Session, *, pinned: Iterable[VerifierKey] = (), outside: Iterable[Note] = (), collect: bool = False
) -> Verified:
    """Verify the whole log against itself, its checkpoints and those that are known from `outside`.

    The session sees one state (`reading.one_state`).

    `pinned` are keys that are trusted; without any, those that the database names. With `collect` the tiles that were
    never stored are kept. Raises NotANote if a note from outside is not signed by a trusted key.
    """
    log_end, outside = reading.end(session), list(outside)
    stored, bad = _stored_notes(session)
    trusting = trusted(pinned or keys.public_keys(session), [*keys.introductions(session), *outside])
    tolerated = keys.before_loss(session) - trusting
    checkpoints = dict(by_size(outside, trusting))
    for size, note in stored:
        found = _checkpoint_of(size, note, trusting)
        if found is None and note.signed_by(tolerated):
            continue
        if found is None or checkpoints.setdefault(size, found).root != found.root:
            bad.append(size)
    tiles: dict[tuple[int, int], bytes] = {}
    known = _full_tiles(session) if collect else {}

    def finished(level: int, index: int, hashes: bytes) -> None:
        if collect and index >= known.get(level, 0):
            tiles[level, index] = hashes

    verifier = Verifier(checkpoints=checkpoints, signed_tile=_SignedTiles(session).tile, finished=finished)
    for batch in reading.rows(session):
        verifier.feed(batch)
    found_faults = verifier.end(log_end.size, log_end.head)
    found_faults += [Fault(size, size, _BAD_NOTE, f"note {size}") for size in bad]
    if collect:
        tiles |= {(level, index): hashes for level, index, hashes in verifier.tree.unfinished()}
    root = verifier.tree.root() if verifier.tree.size else None
    return Verified(verifier.tree.size, root, found_faults, checkpoints, tiles)


def make(database: Database, key: SigningKey, *, published: Iterable[Note] = ()) -> Note | None:
    """Sign what the log is now; None if nothing changed since the last checkpoint. Two at once are harmless.

    `published` are notes that were put outside: the log must still agree with them. Raises NotSigned if anything is not
    as it was written and nobody acknowledged it; writing stops then.
    """
    published = list(published)
    with database.reading() as session:
        reading.one_state(session)
        if _is_signed(session, key, published):
            return None
        found = verify(session, pinned=[key.verifier], outside=published, collect=True)
        fresh = faults.unknown(session, found.faults)
    if fresh:
        faults.stop(database, fresh)
        raise NotSigned(fresh)
    if found.root is None:
        return None
    text = Checkpoint(key.name, found.size, found.root).text
    note = Note(text, (key.sign(text),))
    _store(database, found, note)
    return note


def latest(session: Session) -> AuditCheckpoint | None:
    """The last checkpoint."""
    return session.execute(sa.select(AuditCheckpoint).order_by(AuditCheckpoint.size.desc()).limit(1)).scalar()


def at(session: Session, size: int) -> AuditCheckpoint | None:
    """The checkpoint of exactly this many entries."""
    return session.execute(sa.select(AuditCheckpoint).where(AuditCheckpoint.size == size)).scalar()


def subtrees(session: Session) -> Subtree:
    """The tree as it was signed, for proofs: a few rows each."""
    cache: dict[tuple[int, int], bytes] = {}

    def tile(level: int, index: int) -> bytes:
        if (level, index) not in cache:
            query = sa.select(AuditTile.hashes).where(AuditTile.level == level, AuditTile.tile == index)
            cache[level, index] = session.execute(query.order_by(AuditTile.width.desc()).limit(1)).scalar() or b""
        return cache[level, index]

    return subtree_in_tiles(tile)


class _SignedTiles:
    """Tiles of level 0 by index, read some at a time since they are asked for in order."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._from = 0
        self._tiles: dict[int, bytes] = {}
        self._end = 0

    def tile(self, index: int) -> bytes:
        if not self._from <= index < self._end:
            self._from, self._end = index, index + _TILES_AT_ONCE
            found = self._session.execute(
                sa.select(AuditTile.tile, AuditTile.hashes)
                .where(AuditTile.level == 0, AuditTile.tile >= index, AuditTile.tile < self._end)
                .order_by(AuditTile.tile, AuditTile.width)
            )
            self._tiles = dict(found.all())  # the widest of each comes last
        return self._tiles.get(index, b"")


def _is_signed(session: Session, key: SigningKey, published: list[Note]) -> bool:
    last = latest(session)
    if last is None or last.size != reading.end(session).size:
        return False
    try:
        signed = parse(last.note).signed_by([key.verifier]) is not None
        return signed and all(Checkpoint.parse(note.text).size <= last.size for note in published)
    except NotANote:
        return False


def _stored_notes(session: Session) -> tuple[list[tuple[int, Note]], list[int]]:
    notes, bad = [], []
    for size, text in session.execute(sa.select(AuditCheckpoint.size, AuditCheckpoint.note)):
        try:
            notes.append((size, parse(text)))
        except NotANote:
            bad.append(size)
    return notes, bad


def _checkpoint_of(size: int, note: Note, trusting: Iterable[VerifierKey]) -> Checkpoint | None:
    """What a stored note states, if it is signed and of this size."""
    try:
        stated = by_size([note], trusting)
    except NotANote:
        return None
    return stated.get(size)


def _full_tiles(session: Session) -> dict[int, int]:
    """How many full tiles of each level are stored."""
    found = session.execute(
        sa.select(AuditTile.level, sa.func.max(AuditTile.tile) + 1)
        .where(AuditTile.width == TILE_WIDTH)
        .group_by(AuditTile.level)
    )
    return dict(found.all())


def _store(database: Database, found: Verified, note: Note) -> None:
    rows = [
        {"level": level, "tile": index, "width": len(hashes) // HASH_BYTES, "hashes": hashes}
        for (level, index), hashes in found.tiles.items()
    ]
    values: dict[str, Any] = {
        "size": found.size,
        "root": found.root,
        "note": str(note),
        "made_at": datetime.datetime.now(datetime.UTC),
    }
    with database.writing() as session:
        dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
        if rows:
            session.execute(dialect.insert(AuditTile.__table__).on_conflict_do_nothing(), rows)
        session.execute(dialect.insert(AuditCheckpoint.__table__).values(values).on_conflict_do_nothing())
