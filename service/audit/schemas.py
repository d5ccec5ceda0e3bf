"""The public shape of the audit."""

from __future__ import annotations

import datetime
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from service.audit.export import FORMATS


def _moment(meaning: str) -> fields.AwareDateTime:
    return fields.AwareDateTime(
        format="iso",
        default_timezone=datetime.UTC,
        metadata={"description": f"{meaning}: a day or a moment in ISO 8601; UTC unless it says otherwise"},
    )


class EntryQuery(ma.Schema):
    """What entries are searched by; all filters together."""

    actor = fields.String(metadata={"description": "kind:team/id or kind:id"})
    action = fields.String(metadata={"description": "Such as sizing.created"})
    subject = fields.String(metadata={"description": "The id of what it is about, such as a sizing's"})
    since = _moment("From this on")
    until = _moment("Before this")
    cursor = fields.String(metadata={"description": "`next` of the page before"})
    limit = fields.Integer(
        load_default=50, validate=validate.Range(1, 200), metadata={"description": "Items on a page"}
    )


class ExportQuery(ma.Schema):
    """Which entries, and how."""

    since = _moment("From this on")
    until = _moment("Before this")
    after = fields.Integer(
        load_default=0,
        validate=validate.Range(0, 2**53),
        metadata={"description": "Only entries with a larger number: how a broken export is continued"},
    )
    format = fields.String(load_default="jsonl", validate=validate.OneOf(FORMATS))


class SizeQuery(ma.Schema):
    """In which tree."""

    size = fields.Integer(
        validate=validate.Range(1, 2**53),
        metadata={"description": "Entries of a checkpoint; by default the last"},
    )


class ConsistencyQuery(ma.Schema):
    """Which two trees; both are sizes of checkpoints."""

    first = fields.Integer(required=True, validate=validate.Range(1, 2**53))
    second = fields.Integer(required=True, validate=validate.Range(1, 2**53))


def _hash(meaning: str) -> fields.String:
    return fields.String(required=True, metadata={"description": f"{meaning}, SHA-256 as lower-case hex"})


class Entry(ma.Schema):
    """One entry. `event` stands byte for byte as it was hashed."""

    seq = fields.Integer(required=True)
    leaf = _hash("Leaf hash of the event")
    prev = _hash("Chain hash of the entry before")
    hash = _hash("Chain hash of this entry")
    event = fields.Dict(required=True)


class EntryWithTexts(Entry):
    """One entry and the free text that belongs to it, unless it was erased."""

    texts = fields.Dict(required=True, metadata={"description": "By name: text, and the salt as hex"})


class EntryPage(ma.Schema):
    """Entries, newest first."""

    items = fields.List(fields.Nested(Entry), required=True)
    next = fields.String(required=True, allow_none=True, metadata={"description": "Cursor of the page after"})


class Checkpoint(ma.Schema):
    """What was signed last."""

    size = fields.Integer(required=True, metadata={"description": "How many entries"})
    root = _hash("Root of the Merkle tree over them")
    note = fields.String(required=True, metadata={"description": "The signed note (C2SP)"})
    made_at = fields.String(required=True)


class InclusionProof(ma.Schema):
    """That an entry is in a checkpoint (RFC 9162)."""

    seq = fields.Integer(required=True)
    leaf = _hash("Leaf hash of the entry")
    size = fields.Integer(required=True)
    root = _hash("Root of the tree")
    hashes = fields.List(fields.String(), required=True, metadata={"description": "The audit path, leaf to root"})
    note = fields.String(required=True)


class ConsistencyProof(ma.Schema):
    """That one checkpoint's log begins another's (RFC 9162)."""

    first = fields.Integer(required=True)
    second = fields.Integer(required=True)
    first_root = _hash("Root of the first")
    second_root = _hash("Root of the second")
    hashes = fields.List(fields.String(), required=True)


class Key(ma.Schema):
    """A key that signs or signed."""

    vkey = fields.String(required=True, metadata={"description": "name+id+base64 of the public key"})
    introduced_by = fields.String(
        required=True, allow_none=True, metadata={"description": "The note in which the key before introduced it"}
    )


class Keys(ma.Schema):
    """All keys, the one in use last."""

    items = fields.List(fields.Nested(Key), required=True)


def page_text(items: list[str], following: str | None) -> str:
    """A page whose items are JSON text already."""
    end = "null" if following is None else f'"{following}"'
    return f'{{"items":[{",".join(items)}],"next":{end}}}'


def key_items(found: list[Any]) -> dict[str, Any]:
    """The keys as they are told."""
    return {"items": [{"vkey": row.vkey, "introduced_by": row.note} for row in found]}
