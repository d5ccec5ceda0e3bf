"""Identifiers: UUIDv7 (RFC 9562) and the prefixed text that people see in addresses and logs."""

from __future__ import annotations

import os
import time
import uuid

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def uuid7(*, at_ns: int | None = None) -> uuid.UUID:
    """A UUIDv7: 48 bits of Unix milliseconds, then 74 random bits. Sorts by time across processes.

    `at_ns` is nanoseconds since the epoch, now unless given.
    """
    milliseconds = (time.time_ns() if at_ns is None else at_ns) // 1_000_000
    number = (milliseconds & (2**48 - 1)) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=number)


def public_id(prefix: str, number: uuid.UUID) -> str:
    """`sz_01j9…`: the prefix says what it names; 26 Crockford base-32 digits, which sort like the UUID."""
    digits = "".join(_CROCKFORD[number.int >> shift & 31] for shift in range(125, -1, -5))
    return f"{prefix}_{digits}"
