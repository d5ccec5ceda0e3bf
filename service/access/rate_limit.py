"""Requests per minute, as a generic cell rate algorithm: a full minute's worth at once, then a steady rate.

The times lie in memory that is shared with processes forked after this module was imported, so gunicorn's workers of
one `trainmem serve` count together. Two requests of one caller within the same microsecond may count as one.
"""

from __future__ import annotations

import mmap
import secrets
import threading
import time
from collections.abc import Callable
from hashlib import blake2b

_SLOTS = 1 << 16
_WORD_BYTES = 8
_shared = mmap.mmap(-1, _SLOTS * _WORD_BYTES)
_salt = secrets.token_bytes(16)  # nobody outside can choose a name that shares another's slot


class RateLimit:
    """At most `per_minute` requests of each name; 0 is no limit."""

    def __init__(self, per_minute: int, *, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._interval_ns = 60_000_000_000 // per_minute if per_minute else 0
        self._burst_ns = self._interval_ns * per_minute
        self._clock_ns = clock_ns
        self._lock = threading.Lock()

    def wait_s(self, name: str) -> float:
        """0 if this request is within the limit, and it counts; else the seconds until one would be."""
        if not self._interval_ns:
            return 0.0
        place = int.from_bytes(blake2b(name.encode(), key=_salt, digest_size=4).digest(), "big") % _SLOTS
        start = place * _WORD_BYTES
        with self._lock:
            now = self._clock_ns()
            # when the allowance is whole again; a request moves it one interval into the future
            whole = max(int.from_bytes(_shared[start : start + _WORD_BYTES], "little"), now) + self._interval_ns
            if (over_ns := whole - now - self._burst_ns) > 0:
                return over_ns / 1e9
            _shared[start : start + _WORD_BYTES] = whole.to_bytes(_WORD_BYTES, "little")
        return 0.0
