"""The Merkle tree over the leaves of the log (RFC 9162, section 2.1), kept in tiles of 256 hashes (C2SP tlog-tiles).

The hash of a perfect subtree is asked for by (height, index): the subtree over leaves index·2^height to
(index+1)·2^height, from 0. Level L of the tiles has the hashes of height 8·L.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
HASH_BYTES = 32

Subtree = Callable[[int, int], bytes]


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def perfect_root(hashes: Sequence[bytes]) -> bytes:
    """The root over a power of two of hashes that lie side by side."""
    while len(hashes) > 1:
        hashes = [node_hash(left, right) for left, right in zip(hashes[::2], hashes[1::2], strict=True)]
    return hashes[0]


def root(size: int, subtree: Subtree) -> bytes:
    """The root of the tree over the first `size` ≥ 1 leaves."""
    return _over(0, size, subtree)


def inclusion_proof(index: int, size: int, subtree: Subtree) -> list[bytes]:
    """The audit path of leaf `index` (from 0) in the tree over `size` leaves: PATH of RFC 9162."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size}")
    start, end, path = 0, size, []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_over(middle, end, subtree))
            end = middle
        else:
            path.append(_over(start, middle, subtree))
            start = middle
    return path[::-1]


def consistency_proof(first: int, second: int, subtree: Subtree) -> list[bytes]:
    """That the tree over `first` leaves is the beginning of the one over `second`: PROOF of RFC 9162."""
    if not 0 < first <= second:
        raise ValueError(f"a tree of {first} is no beginning of a tree of {second}")
    start, end, path, whole = 0, second, [], True
    while first - start != end - start:
        middle = start + _split(end - start)
        if first <= middle:
            path.append(_over(middle, end, subtree))
            end = middle
        else:
            path.append(_over(start, middle, subtree))
            start, whole = middle, False
    if not whole:
        path.append(_over(start, end, subtree))
    return path[::-1]


def verify_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], tree: bytes) -> bool:
    """Whether `proof` shows that `leaf` is number `index` (from 0) in the tree over `size` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    place, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(sibling, found)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found == tree


def verify_consistency(first: int, second: int, proof: Sequence[bytes], old: bytes, new: bytes) -> bool:
    """Whether `proof` shows that the tree `old` over `first` leaves begins the tree `new` (RFC 9162, 2.1.4.2)."""
    if not 0 < first <= second:
        return False
    if first == second:
        return not proof and old == new
    path = [old, *proof] if first & (first - 1) == 0 else list(proof)
    if not path:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    found_old = found_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            found_old, found_new = node_hash(sibling, found_old), node_hash(sibling, found_new)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            found_new = node_hash(found_new, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and found_old == old and found_new == new


class Growing:
    """A tree that leaves are added to. It keeps one unfinished tile of each level; finished ones go to `finished`."""

    def __init__(self, finished: Callable[[int, int, bytes], None] = lambda level, index, hashes: None) -> None:
        self.size = 0
        self._levels: list[list[bytes]] = [[]]
        self._counts: list[int] = [0]
        self._finished = finished

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add leaf hashes in order."""
        self.size += len(leaves)
        self._extend(0, leaves)

    def root(self) -> bytes:
        """The root over what was added so far; at least one leaf was."""
        peaks: list[bytes] = []
        for hashes in reversed(self._levels):
            start = 0
            while width := (len(hashes) - start) and 1 << (len(hashes) - start).bit_length() - 1:
                peaks.append(perfect_root(hashes[start : start + width]))
                start += width
        found = peaks.pop()
        while peaks:
            found = node_hash(peaks.pop(), found)
        return found

    def unfinished(self) -> list[tuple[int, int, bytes]]:
        """(level, index, hashes) of the tiles that have room."""
        return [(level, self._counts[level], b"".join(hashes)) for level, hashes in enumerate(self._levels) if hashes]

    def _extend(self, level: int, hashes: Sequence[bytes]) -> None:
        if level == len(self._levels):
            self._levels.append([])
            self._counts.append(0)
        held = self._levels[level]
        held.extend(hashes)
        while len(held) >= TILE_WIDTH:
            tile = held[:TILE_WIDTH]
            del held[:TILE_WIDTH]
            self._finished(level, self._counts[level], b"".join(tile))
            self._counts[level] += 1
            self._extend(level + 1, [perfect_root(tile)])


def subtree_in_tiles(tile: Callable[[int, int], bytes]) -> Subtree:
    """Subtree hashes out of tiles: `tile(level, index)` gives the hashes side by side, as many as there are."""

    def subtree(height: int, index: int) -> bytes:
        level, above = divmod(height, TILE_HEIGHT)
        first = index << above
        hashes = tile(level, first >> TILE_HEIGHT)
        start = first % TILE_WIDTH
        found = [hashes[at * HASH_BYTES : (at + 1) * HASH_BYTES] for at in range(start, start + (1 << above))]
        if len(found[-1]) != HASH_BYTES:
            raise LookupError(f"the tiles do not reach subtree {index} of height {height}")
        return perfect_root(found)

    return subtree


def _split(width: int) -> int:
    """The largest power of two below `width`."""
    return 1 << (width - 1).bit_length() - 1


def _over(start: int, end: int, subtree: Subtree) -> bytes:
    width = end - start
    if width & (width - 1) == 0:
        height = width.bit_length() - 1
        return subtree(height, start >> height)
    middle = start + _split(width)
    return node_hash(_over(start, middle, subtree), _over(middle, end, subtree))
