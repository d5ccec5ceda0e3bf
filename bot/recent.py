"""What arrived lately, so that a delivery that Slack repeats is not answered twice."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock


class Recent:
    """Remembers the last `most` keys of this process. Safe for threads."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def is_new(self, key: str) -> bool:
        """True the first time; an empty key is always new."""
        with self._lock:
            if key in self._keys:
                return False
            if key:
                self._keys[key] = None
            if len(self._keys) > self._most:
                self._keys.popitem(last=False)
            return True
