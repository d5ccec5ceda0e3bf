"""What must not even reach Bolt: it answers such requests with a traceback instead of a refusal."""

from __future__ import annotations

import re
from typing import Protocol

_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class Headers(Protocol):
    def get(self, key: str, default: str) -> str: ...


def well_formed(headers: Headers) -> bool:
    """Whether the headers could be Slack's at all. Whether they are, the signature check decides."""
    timestamp = headers.get("X-Slack-Request-Timestamp", "")
    signature = headers.get("X-Slack-Signature", "")
    return bool(_TIMESTAMP.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature))
