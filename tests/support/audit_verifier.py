"""A second reading of docs/audit.md: verifies a log with the standard library alone and no code of the service."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

Row = tuple[int, str, bytes, bytes]


def canonical(value: object) -> str:
    """RFC 8785 for values without fractions: sorted keys, no spaces, UTF-8 as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def verify(rows: Iterable[Row], size: int, head: bytes) -> str | None:
    """What is wrong with the first bad one of (seq, body, prev, hash) in order of seq; None when all is well.

    `size` and `head` are what the log says of itself.
    """
    last, count = b"\0" * 32, 0
    for seq, body, previous, chained in rows:
        count += 1
        if seq != count:
            return f"{count} is missing, {seq} stands there"
        if json.loads(body)["seq"] != seq:
            return f"{seq} says in its body that it is another"
        if previous != last:
            return f"{seq} does not follow the one before it"
        leaf = sha256(b"\0" + body.encode()).digest()
        last = sha256(b"trainmem-audit/1\n" + seq.to_bytes(8, "big") + previous + leaf).digest()
        if chained != last:
            return f"{seq} was changed"
    if (count, last) != (size, head):
        return f"the log ends at {count}, its head says {size}"
    return None
