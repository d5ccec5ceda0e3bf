"""Ids that people read out to operators, and keys that make a second press the same question."""

from __future__ import annotations

import hashlib
import secrets

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def incident_id() -> str:
    """Eight letters and digits without look-alikes; goes to the service as `X-Request-Id` and stands in both logs."""
    return "".join(secrets.choice(_LETTERS) for _ in range(8))


def idempotency_key(trigger_id: str | None, purpose: str = "") -> str:
    """The same for every delivery of one press: Slack makes a `trigger_id` for each. Without one nothing repeats."""
    source = trigger_id or secrets.token_hex(16)
    return "slack-" + hashlib.sha256(f"{purpose}\n{source}".encode()).hexdigest()[:40]
