"""What the OpenAPI document says of requests beyond their schemas: headers, query parameters, bodies with examples."""

from __future__ import annotations

from typing import Any

from service.access.service import CHANNEL, ON_BEHALF_OF
from service.engine.ledger import MOMENTS, TERMS
from service.requests.keys import KEYS
from service.requests.schemas import SizingRequestSchema
from service.sizings.schemas import Batch

WRITE_HEADERS = [
    {
        "in": "header",
        "name": "Idempotency-Key",
        "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
        "description": "Repeat a request safely: the same key and body give the recorded sizing again, for a day",
    },
    {
        "in": "header",
        "name": ON_BEHALF_OF,
        "schema": {
            "type": "string",
            "pattern": r"^[a-z][a-z0-9-]{0,31}:([A-Za-z0-9._-]{1,64}/)?[A-Za-z0-9._@-]{1,100}$",
        },
        "description": "Whom a trusted caller asks for, such as slack:T012/U345",
    },
    {
        "in": "header",
        "name": CHANNEL,
        "schema": {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,64}$"},
        "description": "The channel in which that person asked",
    },
]

#: In a query everything is text, as in a command.
QUERY = [
    {
        "in": "query",
        "name": key.name,
        "schema": {"type": "string"},
        "description": f"{key.meaning} ({key.allowed}; default: {key.default})",
    }
    for key in KEYS.values()
]
#: what a query may say besides, which sizes nothing: how much of the ledger the answer shows
DETAIL = [
    {"in": "query", "name": name, "schema": {"type": "string", "enum": list(allowed)}, "description": meaning}
    for name, allowed, meaning in (
        ("detail", ("rows",), "Add `rows`: every tensor behind the terms, with formula, bytes, why and source"),
        ("term", TERMS, "Only the rows of this term"),
        ("moment", MOMENTS, "The rows alive at this moment, instead of where the term is largest"),
    )
]

_COMMAND = {
    "type": "object",
    "required": ["command"],
    "additionalProperties": False,
    "properties": {"command": {"type": "string", "description": KEYS["command"].meaning}},
}


def _json(schema: Any, *examples: dict[str, Any]) -> dict[str, Any]:
    named = {f"example{place}": {"value": value} for place, value in enumerate(examples, start=1)}
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": named}}}


QUESTION_BODY = _json(
    {"oneOf": [SizingRequestSchema, _COMMAND]},
    {"command": "70B seq=8k mb=2 gpu=H100"},
    {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"},
)
BATCH_BODY = _json(Batch, {"requests": [{"model": "8B", "tp": 8}, {"command": "70B seq=8k"}]})
