"""A million entries: pages in milliseconds at any depth, verification against reading and hashing, export in little
memory. Ratios of one run. `make bench` runs it; filling takes minutes."""

from __future__ import annotations

import hashlib
import os
import resource
import time

from service import cursors
from service.audit import checkpoints, entries, export, reading
from service.database import Database
from tests.support.bulk_log import fill

ENTRIES = int(os.environ.get("BENCH_ENTRIES", "1000000"))
FILTERS: list[dict[str, str]] = [
    {},
    {"actor": "slack:T012/U007"},
    {"action": "token.created"},
    {"actor": "slack:T012/U000", "action": "token.created"},
]


def _read_and_hash(database: Database) -> float:
    with database.reading() as session:
        started_s = time.perf_counter()
        for batch in reading.rows(session):
            for _, body, _, _ in batch:
                hashlib.sha256(body).digest()
        return time.perf_counter() - started_s


def _verify(database: Database) -> float:
    with database.reading() as session:
        reading.one_state(session)
        started_s = time.perf_counter()
        assert checkpoints.verify(session).faults == []
        return time.perf_counter() - started_s


def _page_ms(database: Database, filters: dict[str, str], cursor: str | None) -> float:
    def once() -> float:
        with database.reading() as session:
            session.connection()
            started_s = time.perf_counter()
            entries.search(session, filters=filters, cursor=cursor)
            return (time.perf_counter() - started_s) * 1000

    return min(once() for _ in range(5))


def test_a_million_entries(database: Database) -> None:
    fill(database, ENTRIES)
    ratio = min(_verify(database) / _read_and_hash(database) for _ in range(3))
    print(f"\nverification takes {ratio:.2f} × reading and hashing {ENTRIES:,} entries")
    assert ratio <= 3
    for filters in FILTERS:
        depths = [_page_ms(database, filters, c) for c in (None, *map(cursors.encode, (ENTRIES // 2, ENTRIES // 50)))]
        print(f"{filters or 'all'}: {', '.join(f'{ms:.1f} ms' for ms in depths)} at the top, half way, near the end")
        assert max(depths) <= 30
    before = _peak_mb()
    with database.reading() as session:
        size = sum(len(text) for text in export.lines(session, reading.Span(0, ENTRIES), format="jsonl"))
    print(f"export of {size >> 20:,} MiB took {_peak_mb() - before:.0f} MB more, {_peak_mb():.0f} MB in all")
    assert _peak_mb() - before <= 200


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
