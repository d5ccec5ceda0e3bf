"""JSON Lines in, JSON Lines out: one sizing, or one error, for every request and in the same order."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from service import strict_json
from service.catalog.facts import Catalog, packaged
from service.engine.errors import InvalidInput
from service.errors import BodyTooLarge, MalformedBody, ServiceError, problem_document
from service.sizings.answer import answer
from service.sizings.names import read_request

#: As large as a body over HTTP may be.
LONGEST_LINE_BYTES = 256 * 1024


def answer_lines(source: BinaryIO, target: IO[str]) -> None:
    """Answer every line that is not blank, each as soon as it was read; a bad one does not sink the rest."""
    catalog = packaged()
    for line in _lines(source):
        target.write(answer_line(line, catalog) + "\n")
        target.flush()


def answer_line(line: bytes, catalog: Catalog) -> str:
    """The sizing of one line of JSON, or {"error": problem document}, as JSON. Raises nothing."""
    try:
        if len(line) > LONGEST_LINE_BYTES:
            raise BodyTooLarge(f"A line has at most {LONGEST_LINE_BYTES // 1024} KiB.")
        return _json(answer(read_request(strict_json.loads(line), catalog), catalog))
    except (InvalidInput, ServiceError) as refused:
        return _json({"error": problem_document(refused)})
    except Exception as defect:
        traceback.print_exc()
        return _json({"error": _defect(defect)})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Lines without their ends; of a longer line than is allowed only as much as shows that it is."""
    while line := source.readline(LONGEST_LINE_BYTES + 2):
        rest = line
        while not rest.endswith(b"\n") and (rest := source.readline(LONGEST_LINE_BYTES)):
            pass
        line = line.strip()
        if line:
            yield line


def _defect(defect: Exception) -> dict[str, Any]:
    """A problem document for a fault of ours; the traceback is on standard error."""
    return {
        **problem_document(MalformedBody("")),
        "type": "about:blank",
        "title": "This is a defect of trainmem",
        "status": 500,
        "detail": f"{type(defect).__name__}: {defect}",
    }
