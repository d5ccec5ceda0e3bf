"""What a caller may be allowed, one word for each."""

from __future__ import annotations

#: Every scope and what it allows, in the order that help texts show them.
SCOPES = {
    "size": "size runs, record them and read them back by id",
    "audit:read": "list and search sizings, the audit, reports and the measured accuracy",
    "decide": "approve, override, reject and withdraw",
    "observe": "report what a job really used",
    "catalog:write": "change pools of GPUs",
    "admin": "everything, and what changes how the service answers",
}

EVERYTHING = frozenset(SCOPES)


def expanded(scopes: frozenset[str]) -> frozenset[str]:
    """`admin` has every scope."""
    return EVERYTHING if "admin" in scopes else scopes
