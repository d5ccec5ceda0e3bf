"""Verifying a log: pure, from rows in order, in bounded memory. The same code checks a database and an export.

Nothing is parsed: a body is hashed as it stands, and its number is looked for in the text. A fault does not end the
walk; it goes on from what is stored, so that all faults are named, the first one first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from service.audit.chain import DOMAIN, GENESIS
from service.audit.merkle import HASH_BYTES, TILE_WIDTH, Growing
from service.audit.notes import Checkpoint

#: seq, body as UTF-8, prev, hash
Row = tuple[int, bytes, bytes, bytes]

MOST_FAULTS = 100
_SEQ = b',"seq":'
#: in the place of an entry that is missing
_NOTHING = bytes(HASH_BYTES)


class Fault(NamedTuple):
    """Something that is not as it was written, from entry `seq` to `upto`. `fingerprint` tells it from every other."""

    seq: int
    upto: int
    what: str
    fingerprint: str

    def __str__(self) -> str:
        return f"entry {self.seq:,} {self.what}"


class Verifier:
    """Feed it every row in order, then `end` it; `faults` says what is wrong, [] that all is well.

    `checkpoints` are signed roots by size. `signed_tile` gives the leaf hashes that were signed for tile `index` of
    level 0, as many as were signed, so that a changed entry is named even if everything after it was hashed again.
    """

    def __init__(
        self,
        *,
        after: int = 0,
        previous: bytes | None = GENESIS,
        checkpoints: Mapping[int, Checkpoint] | None = None,
        signed_tile: Callable[[int], bytes] | None = None,
        finished: Callable[[int, int, bytes], None] = lambda level, index, hashes: None,
    ) -> None:
        """`after` is the number before the first row, `previous` its hash or None if that is not known.

        Checkpoints are looked at if the rows are `whole`, that is, begin with entry 1.
        """
        self.faults: list[Fault] = []
        self.seq, self.last = after, previous
        self.whole = after == 0
        self._sizes = sorted(checkpoints or ()) if self.whole else []
        self._checkpoints = checkpoints or {}
        self._matched = 0
        self._signed_tile = signed_tile
        self._tile = (-1, b"")
        self.tree = Growing(finished)

    def feed(self, rows: Iterable[Row]) -> None:
        """Check the next rows."""
        sha256, leaves, seq = hashlib.sha256, list[bytes](), self.seq
        last = self.last
        for number, body, previous, chained in rows:
            seq += 1
            leaf = sha256(b"\0" + body).digest()
            if last is None:
                last = previous
            if (
                number != seq
                or previous != last
                or not body.startswith(b'%d,"subject":' % seq, body.rfind(_SEQ) + 7)
                or sha256(DOMAIN + seq.to_bytes(8, "big") + previous + leaf).digest() != chained
            ):
                leaves += self._diagnose(seq, number, body, leaf, previous, last, chained)
                seq = number
                chained = chained if isinstance(chained, bytes) else b""
            leaves.append(leaf)
            last = chained
        self.seq, self.last = seq, last
        if self.whole:
            self._grow(leaves)

    def end(self, size: int | None = None, head: bytes | None = None) -> list[Fault]:
        """No more rows. `size` and `head` are what the log says of its own end, if it is at hand."""
        if size is not None and (self.seq, self.last) != (size, head):
            if self.seq < size:
                self._missing(self.seq + 1, size, ": the log says that it had them")
            elif self.seq > size:
                self._fault(size + 1, f"stands behind the end of the log, which says it has {size:,}", head or b"")
            else:
                self._fault(self.seq, "is not what the head of the log says it ends with", head or b"")
        for beyond in (size for size in self._sizes if size > self.tree.size):
            self._missing(self.tree.size + 1, beyond, f": a checkpoint was signed over {beyond:,} entries")
        return self.faults

    def _diagnose(
        self, seq: int, number: int, body: bytes, leaf: bytes, previous: bytes, last: bytes, chained: bytes
    ) -> list[bytes]:
        """Name what is wrong with a row; gives leaves in place of entries that are missing, so that places stay."""
        missing: list[bytes] = []
        if number > seq:
            self._missing(seq, number - 1)
            missing = [_NOTHING] * min(number - seq, 10_000_000)
        elif number < seq:
            self._fault(seq, f"is number {number}", leaf)
        if not isinstance(previous, bytes) or not isinstance(chained, bytes):
            self._fault(number, "has a link that is no hash", leaf)
            return missing
        again = hashlib.sha256(DOMAIN + number.to_bytes(8, "big", signed=number < 0) + previous + leaf).digest()
        if not body.startswith(b'%d,"subject":' % number, body.rfind(_SEQ) + 7):
            self._fault(number, "has a body that says it is another entry", leaf)
        elif again != chained:
            self._fault(number, "was changed", leaf + chained)
        elif previous != last and not missing:
            self._fault(number, "does not follow the entry before it", leaf + previous)
        return missing

    def _grow(self, leaves: list[bytes]) -> None:
        """Put leaves into the tree, and look at it where a root was signed."""
        start = 0
        while start < len(leaves):
            size, end = self.tree.size, len(leaves)
            room = TILE_WIDTH - size % TILE_WIDTH if self._signed_tile else end
            upto = min(end, start + room)
            while self._sizes and self._sizes[0] <= size:
                self._sizes.pop(0)
            if self._sizes:
                upto = min(upto, start + self._sizes[0] - size)
            found = leaves[start:upto]
            self.tree.extend(self._as_signed(size, found) if self._signed_tile else found)
            start = upto
            if self._sizes and self.tree.size == self._sizes[0]:
                self._look_at_root(self._checkpoints[self._sizes.pop(0)])

    def _as_signed(self, size: int, found: Sequence[bytes]) -> Sequence[bytes]:
        """The leaves as they were signed, naming those that are others now."""
        assert self._signed_tile is not None
        index, offset = divmod(size, TILE_WIDTH)
        if self._tile[0] != index:
            self._tile = (index, self._signed_tile(index))
        start = offset * HASH_BYTES
        signed = self._tile[1][start : start + len(found) * HASH_BYTES]
        if not signed or signed == b"".join(found)[: len(signed)]:
            return found
        stood = [signed[at : at + HASH_BYTES] for at in range(0, len(signed), HASH_BYTES)]
        for place, (was, now) in enumerate(zip(stood, found, strict=False)):
            seq = size + place + 1
            if now not in (was, _NOTHING) and not any(fault.seq == seq for fault in self.faults):
                self._fault(seq, "was changed after it was signed", was + now)
        return [*stood, *found[len(stood) :]]

    def _look_at_root(self, checkpoint: Checkpoint) -> None:
        if self.tree.root() == checkpoint.root:
            self._matched = checkpoint.size
            return
        first = self._matched + 1
        upto = "" if first == checkpoint.size else f"or one up to {checkpoint.size:,} "
        if not any(first <= fault.seq <= checkpoint.size for fault in self.faults):
            self._fault(first, f"{upto}is not what was signed", checkpoint.root, upto=checkpoint.size)

    def _missing(self, seq: int, upto: int, why: str = "") -> None:
        if not any(fault.seq == seq and fault.upto == upto for fault in self.faults):
            self._fault(seq, f"{'is' if seq == upto else f'and all to {upto:,} are'} missing{why}", None, upto=upto)

    def _fault(self, seq: int, what: str, evidence: bytes | None, *, upto: int | None = None) -> None:
        """`evidence` is what stands there now; the same place with something else there is another fault."""
        if len(self.faults) < MOST_FAULTS:
            upto = upto or seq
            about = b"missing" if evidence is None else what.encode() + b"\n" + evidence
            mark = hashlib.sha256(b"%d\n%d\n%b" % (seq, upto, about)).hexdigest()
            self.faults.append(Fault(seq, upto, what, mark))
