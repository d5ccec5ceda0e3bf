"""Quantities as people write and read them: "8k", "70B", "61.3 GiB".

K is 1024 where lengths and batches are meant (8k = 8192 tokens in a sequence) and 1000 where parameters and training
tokens are. GB is 10^9 bytes, GiB 2^30; no function here writes one without its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

GB = 10**9
GIB = 2**30

BINARY_SUFFIXES: Mapping[str, int] = {"": 1, "k": 1024, "m": 1024**2}
DECIMAL_SUFFIXES: Mapping[str, int] = {
    "": 1, "k": 10**3, "m": 10**6, "mn": 10**6, "million": 10**6, "b": 10**9, "bn": 10**9, "billion": 10**9,
    "g": 10**9, "t": 10**12, "tn": 10**12, "trillion": 10**12,
}  # fmt: skip

#: Digits are bounded so that reading stays cheap whatever is sent: more than 40 are no quantity of ours.
_QUANTITY = re.compile(r"([+-]?\d{1,40}(?:\.\d{1,40})?(?:e[+-]?\d{1,2})?)\s?([a-z]*)", re.ASCII)


def read_tokens(text: str) -> int:
    """A length or a batch: "8192", "8k" = 8192, "1M" = 1048576. Raises ValueError when it is not a whole number."""
    return _read(text, BINARY_SUFFIXES)


def read_parameters(text: str) -> int:
    """A count of parameters or of training tokens: "70B", "7e9", "1.5T". Raises ValueError as `read_tokens`."""
    return _read(text, DECIMAL_SUFFIXES)


def _read(text: str, suffixes: Mapping[str, int]) -> int:
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in suffixes:
        known = ", ".join(sorted(suffix.upper() for suffix in suffixes if len(suffix) == 1))
        raise ValueError(f"{text[:40]!r} is not a number, alone or with one of {known}")
    amount = Decimal(match[1]) * suffixes[match[2]]
    if amount != amount.to_integral_value():
        raise ValueError(f"{text[:40]!r} is not a whole number")
    return int(amount)


def format_gib(size_bytes: int, digits: int = 1) -> str:
    """Bytes in GiB (2^30), with the unit: "61.3 GiB"."""
    return f"{size_bytes / GIB:,.{digits}f} GiB"


def format_binary(size_bytes: int) -> str:
    """Bytes in the largest binary unit that leaves a figure before the point: "1.2 GiB", "62.0 MiB", "512 B"."""
    for unit, scale in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(size_bytes) >= scale:
            return f"{size_bytes / scale:,.1f} {unit}"
    return f"{size_bytes} B"


def format_gb(size_bytes: int, digits: int = 1) -> str:
    """Bytes in GB (10^9), with the unit: "65.8 GB"."""
    return f"{size_bytes / GB:,.{digits}f} GB"


def format_parameters(count: int) -> str:
    """A count of parameters or training tokens to three digits: "70.6B", "124M", "1.03T"."""
    for suffix, scale in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= scale * 0.9995:
            amount = count / scale
            digits = 2 if amount < 9.995 else 1 if amount < 99.95 else 0
            return f"{amount:.{digits}f}{suffix}"
    return str(count)


def format_tokens(count: int) -> str:
    """A length or a batch the way it is asked for, exact: 8192 is "8k", 1048576 "1M", 8000 "8000"."""
    for suffix, scale in (("M", 1024**2), ("k", 1024)):
        if count and count % scale == 0:
            return f"{count // scale}{suffix}"
    return str(count)
