"""The bytes of the audit: canonical event, leaf and chain hash. Version 1, fixed by tests/service/audit/golden.jsonl.

    body    RFC 8785 canonical JSON of the event, as UTF-8
    leaf    SHA-256(0x00 ‖ body)                                          RFC 6962 leaf, so Merkle tools work on it
    hash_n  SHA-256("trainmem-audit/1\\n" ‖ n as 8 bytes big-endian ‖ hash_(n-1) ‖ leaf_n),   hash_0 = 32 zero bytes

The domain string and the number inside the hash keep entries from being spliced between logs, versions and places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

DOMAIN = b"trainmem-audit/1\n"
GENESIS = bytes(32)

#: The members of an event, each always present, in canonical order.
MEMBERS = (
    "action",
    "actor",
    "at",
    "catalog",
    "engine",
    "id",
    "log",
    "outcome",
    "request",
    "request_id",
    "result",
    "seq",
    "subject",
    "v",
    "via",
)


def leaf_hash(body: bytes) -> bytes:
    """The RFC 6962 leaf hash of an entry's body."""
    return hashlib.sha256(b"\x00" + body).digest()


def chain_hash(seq: int, previous: bytes, leaf: bytes) -> bytes:
    """The hash of entry `seq` (from 1), which follows the entry whose hash is `previous`."""
    return hashlib.sha256(DOMAIN + seq.to_bytes(8, "big") + previous + leaf).digest()


class Draft:
    """An event in canonical form except for its number.

    The number is only known while every other writer waits for us, so all the rest is written out before: a canonical
    object is its members in order, each canonical by itself.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        """`event` has every member of MEMBERS but `seq`. Raises ValueError if not, or if it has no canonical form."""
        if missing_or_more := set(event) ^ (set(MEMBERS) - {"seq"}):
            raise ValueError(f"an event has exactly the members of version 1, not {sorted(missing_or_more)}")
        at = MEMBERS.index("seq")
        self._before = b",".join(_member(name, event[name]) for name in MEMBERS[:at])
        self._after = b",".join(_member(name, event[name]) for name in MEMBERS[at + 1 :])

    def body(self, seq: int) -> bytes:
        """The canonical event as entry number `seq`."""
        return b'{%b,"seq":%d,%b}' % (self._before, seq, self._after)


def _member(name: str, value: Any) -> bytes:
    return b'"%b":%b' % (name.encode(), rfc8785.dumps(value))
