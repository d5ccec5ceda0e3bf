"""The public shape of decisions."""

from __future__ import annotations

import datetime
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from service.json_body import Choice, Text, WholeNumber
from service.sizings.schemas import Answer, Audit

DECISIONS = ("approve", "override", "reject", "withdraw")
MOST_GPUS = 1_000_000


class DecisionBody(ma.Schema):
    """What is decided. A reason is needed unless it is an approval; an override grants other GPUs than were asked."""

    decision = Choice(DECISIONS, required=True)
    gpus_granted = WholeNumber(
        1, MOST_GPUS, load_default=None, allow_none=True, metadata={"description": "What was asked, unless given"}
    )
    gpu = Text(100, load_default=None, allow_none=True, metadata={"description": "Another GPU than was asked"})
    reason = Text(2000, load_default=None, allow_none=True)

    @ma.validates_schema
    def _check(self, data: dict[str, Any], **_: Any) -> None:
        wrong: dict[str, list[str]] = {}
        grants = data["gpus_granted"] is not None or data["gpu"] is not None
        if data["decision"] != "approve" and data["reason"] is None:
            wrong["reason"] = [f"is needed to {data['decision']}"]
        if data["decision"] == "override" and not grants:
            wrong["gpus_granted"] = ["or gpu is needed: an override grants something else than was asked"]
        if data["decision"] in ("reject", "withdraw"):
            for name in ("gpus_granted", "gpu"):
                if data[name] is not None:
                    wrong[name] = [f"does not go with {data['decision']}, which grants nothing"]
        if wrong:
            raise ma.ValidationError(wrong)


class Decision(Answer):
    """A recorded decision. It never changes; a later one may stand in its place."""

    id = fields.String(metadata={"description": "dc_ and 26 characters"})
    sizing_id = fields.String()
    place = fields.Integer(metadata={"description": "Which one on this sizing, from 1; the last one stands"})
    recorded_at = fields.String(metadata={"description": "UTC with microseconds"})
    decision = fields.String(validate=validate.OneOf(DECISIONS))
    gpus_granted = fields.Integer(allow_none=True)
    gpu = fields.String(allow_none=True)
    reason = fields.String(allow_none=True, metadata={"description": "Null if there is none, or if it was erased"})
    decided_by = fields.String(metadata={"description": "kind:team/id or kind:id"})
    audit = fields.Nested(Audit)


class DecisionPage(Answer):
    """The decisions of one sizing, first to last."""

    items = fields.List(fields.Nested(Decision))
    next = fields.String(allow_none=True)


class News(Decision):
    """A decision with what it is about."""

    sizing = fields.Dict(metadata={"description": "id, requester, model, gpu, gpus and verdict of what was asked"})


class NewsPage(Answer):
    """Decisions as they were made; `next` goes on behind the last, also when there is none yet."""

    items = fields.List(fields.Nested(News))
    next = fields.String()


class NewsQuery(ma.Schema):
    """What news is wanted."""

    kind = fields.String(
        validate=validate.Regexp(r"^[a-z][a-z0-9-]{0,31}$"),
        metadata={"description": "Only of sizings whose requester is of this kind, such as slack"},
    )
    since = fields.AwareDateTime(
        format="iso",
        default_timezone=datetime.UTC,
        metadata={"description": "Without a cursor: from this moment on"},
    )
    cursor = fields.String(metadata={"description": "`next` of the time before"})
    limit = fields.Integer(load_default=50, validate=validate.Range(1, 200), metadata={"description": "Items at once"})
