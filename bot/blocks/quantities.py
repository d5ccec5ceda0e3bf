"""Writing sizes for people: the unit always beside the number, GiB and GB both at hand."""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

_BINARY = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_DECIMAL = (10**9, "GB"), (10**6, "MB"), (10**3, "kB")


def _written(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"


def _step(size_bytes: int) -> int:
    """0 for GiB and GB, 1 below a tenth of a GiB, 2 below a tenth of a MiB."""
    return sum(abs(size_bytes) < unit // 10 for unit in (GIB, MIB))


def gib(size_bytes: int) -> str:
    """Binary: "61.3 GiB", "12.5 MiB", "3.0 KiB"."""
    unit, name = _BINARY[_step(size_bytes)]
    return f"{_written(size_bytes / unit)} {name}"


def gb(size_bytes: int) -> str:
    """Decimal: "65.8 GB", and "13.1 MB" where `gib` says MiB."""
    unit, name = _DECIMAL[_step(size_bytes)]
    return f"{_written(size_bytes / unit)} {name}"


def both(size_bytes: int) -> str:
    return "0" if size_bytes == 0 else f"{gib(size_bytes)} ({gb(size_bytes)})"


def share(part_bytes: int, whole_bytes: int) -> str:
    """A percentage; what is there but rounds to nothing is "<1%"."""
    if whole_bytes <= 0 or part_bytes <= 0:
        return "0%"
    percent = 100 * part_bytes / whole_bytes
    return "<1%" if percent < 1 else f"{percent:.0f}%"


def count(value: int) -> str:
    return f"{value:,}"


def parameters(value: int) -> str:
    """ "70.6 B", "124 M": decimal, three digits."""
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return str(value)


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def money(amount: str) -> str:
    """ "12345.60" → "$12,346"; cents only below 100 dollars."""
    value = float(amount)
    return f"${value:,.0f}" if value >= 100 else f"${value:,.2f}"
