"""The log as lines of text, for keeping elsewhere and verifying there; and reading such lines back.

JSON Lines   {"seq":1,"prev":"hex","hash":"hex","body":"the canonical event, as a JSON string"}
CSV          the same four, and in front of them what a spreadsheet wants to sort by
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy.orm import Session

from service.audit import reading
from service.audit.verification import Row

CSV_COLUMNS = ("seq", "at", "actor", "via", "action", "subject", "outcome", "prev", "hash", "body")


class NotAnExport(ValueError):
    """A line that is no line of an export; says which."""


def lines(session: Session, span: reading.Span, *, format: str) -> Iterator[str]:
    """The entries of a span as text, some hundred at a time, in bounded memory."""
    write = _FORMATS[format]
    if format == "csv" and span.after == 0:
        yield _csv_text([CSV_COLUMNS])
    for batch in reading.rows(session, after=span.after, upto=span.upto):
        yield write(batch)


def read(text_lines: Iterable[str]) -> Iterator[list[Row]]:
    """The rows of an export, one to a list, JSON Lines or CSV by what the first line is. Raises NotAnExport."""
    found = iter(text_lines)
    first = next(found, None)
    if first is None:
        return
    rest = _chain(first, found)
    yield from (_from_csv(rest) if first.startswith("seq,") else _from_json(rest))


def last_seq(path_lines: Iterable[str]) -> int:
    """The number in the last whole line of an export of JSON Lines; 0 if there is none."""
    last = 0
    for line in path_lines:
        if line.endswith("\n"):
            last = int(json.loads(line)["seq"])
    return last


def _jsonl(batch: Iterable[Row]) -> str:
    return "".join(
        f'{{"seq":{seq},"prev":"{prev.hex()}","hash":"{chained.hex()}","body":'
        f"{json.dumps(body.decode('utf-8', 'replace'), ensure_ascii=False)}}}\n"
        for seq, body, prev, chained in batch
    )


def _csv(batch: Iterable[Row]) -> str:
    return _csv_text(_csv_row(*row) for row in batch)


def _csv_row(seq: int, body: bytes, prev: bytes, chained: bytes) -> list[Any]:
    event = json.loads(body)
    actor = event["actor"]
    who = f"{actor['kind']}:{actor['team']}/{actor['id']}" if actor["team"] else f"{actor['kind']}:{actor['id']}"
    told = [event["at"], who, event["via"], event["action"], event["subject"], event["outcome"]]
    return [seq, *told, prev.hex(), chained.hex(), body.decode()]


def _csv_text(rows: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


_FORMATS: dict[str, Callable[[Iterable[Row]], str]] = {"jsonl": _jsonl, "csv": _csv}
FORMATS = tuple(_FORMATS)


def _from_json(text_lines: Iterable[str]) -> Iterator[list[Row]]:
    for number, line in enumerate(text_lines, 1):
        try:
            row = json.loads(line)
            yield [(int(row["seq"]), row["body"].encode(), bytes.fromhex(row["prev"]), bytes.fromhex(row["hash"]))]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise NotAnExport(f"line {number} is no line of an export; it may be cut off") from None


def _from_csv(text_lines: Iterable[str]) -> Iterator[list[Row]]:
    csv.field_size_limit(1 << 24)
    for number, row in enumerate(csv.DictReader(text_lines), 2):
        try:
            yield [(int(row["seq"]), row["body"].encode(), bytes.fromhex(row["prev"]), bytes.fromhex(row["hash"]))]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NotAnExport(f"row {number} is no row of an export; it may be cut off") from None


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest
