"""The public shape of observations."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from service.json_body import LARGEST_BYTES, Choice, Text, WholeNumber
from service.sizings.decisions.schemas import MOST_GPUS
from service.sizings.schemas import Answer, Audit

OUTCOMES = ("ok", "oom")
PEAKS = ("allocated_bytes", "reserved_bytes", "device_bytes")


def _bytes(meaning: str) -> WholeNumber:
    return WholeNumber(
        1, LARGEST_BYTES, load_default=None, allow_none=True, metadata={"description": f"{meaning}, of the fullest GPU"}
    )


class PeakBody(ma.Schema):
    """The largest memory of the fullest GPU; what was measured of the three."""

    allocated_bytes = _bytes("torch.cuda.max_memory_allocated")
    reserved_bytes = _bytes("torch.cuda.max_memory_reserved")
    device_bytes = _bytes("What nvidia-smi showed")


class ObservationBody(ma.Schema):
    """What a job used. A job that ran has at least one of the three peaks."""

    job_id = Text(200, required=True, metadata={"description": "As the scheduler names it"})
    outcome = Choice(OUTCOMES, required=True)
    gpus = WholeNumber(1, MOST_GPUS, required=True)
    peak = fields.Nested(PeakBody, load_default=dict)
    framework = Text(100, load_default=None, allow_none=True)
    framework_version = Text(100, load_default=None, allow_none=True)

    @ma.validates_schema
    def _check(self, data: dict[str, Any], **_: Any) -> None:
        if data["outcome"] == "ok" and not any(data["peak"].get(name) for name in PEAKS):
            raise ma.ValidationError({"peak": [f"of a job that ran has one of {', '.join(PEAKS)}"]})


class ObservedPeak(Answer):
    """What was measured; null what was not."""

    allocated_bytes = fields.Integer(allow_none=True)
    reserved_bytes = fields.Integer(allow_none=True)
    device_bytes = fields.Integer(allow_none=True)


class Observation(Answer):
    """A recorded observation, with what had been predicted. It never changes."""

    id = fields.String(metadata={"description": "ob_ and 26 characters"})
    sizing_id = fields.String()
    job_id = fields.String()
    recorded_at = fields.String(metadata={"description": "UTC with microseconds"})
    observed_by = fields.String(metadata={"description": "kind:team/id or kind:id"})
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))
    gpus = fields.Integer()
    peak = fields.Nested(ObservedPeak)
    predicted = fields.Nested(ObservedPeak, metadata={"description": "What the sizing had said"})
    framework = fields.String(allow_none=True)
    framework_version = fields.String(allow_none=True)
    audit = fields.Nested(Audit)


class ObservationPage(Answer):
    """The observations on one sizing, first to last."""

    items = fields.List(fields.Nested(Observation))
    next = fields.String(allow_none=True)
