"""How large a model may be said to be.

The engine multiplies integers in 64 bits. One size alone stays below these bounds; together they stay below
MOST_PARAMETERS, so that parameters times the dearest state (18 bytes) or times a layer count stay below 2^63.
"""

from __future__ import annotations

import json
from typing import Any

MOST_LAYERS = 4096
MOST_HIDDEN = 2**20
MOST_HEADS = 2**16
MOST_VOCAB = 2**24
MOST_EXPERTS = 2**16
MOST_POSITIONS = 2**27
LEAST_PARAMETERS = 10**6
MOST_PARAMETERS = 10**15


def shown(value: Any, most: int = 60) -> str:
    """A value as an error message shows it: as JSON writes it, cut short."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**most:
        return f"a whole number of more than {most} digits"
    if isinstance(value, list | dict) and len(value) > 8:
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)} entries"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"
