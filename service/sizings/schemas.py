"""The public shape of a sizing, for the OpenAPI document; the engine writes it, and tests hold the two together."""

from __future__ import annotations

import datetime
from typing import Any, ClassVar

import marshmallow as ma
from marshmallow import fields, validate


class Answer(ma.Schema):
    """Members are null where they do not apply, never absent. There may be more than are described."""

    ONLY_WHEN_ASKED: ClassVar[tuple[str, ...]] = ()

    class Meta:
        unknown = ma.INCLUDE

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        field_obj.required = field_name not in self.ONLY_WHEN_ASKED


def _bytes(meaning: str) -> fields.Integer:
    return fields.Integer(metadata={"description": meaning})


class Audit(Answer):
    """The receipt: with it anyone can have the entry proven later."""

    seq = fields.Integer(metadata={"description": "Number of the audit entry"})
    leaf = fields.String(metadata={"description": "SHA-256 leaf hash of the entry, lower-case hex"})


class Part(Answer):
    """A part of a term."""

    name = fields.String()
    bytes = fields.Integer()
    formula = fields.String(allow_none=True)


class Term(Answer):
    """One term of memory with its formula and its reason."""

    term = fields.String(
        validate=validate.OneOf(
            ["weights", "gradients", "master_weights", "optimizer_moments", "activations", "working", "runtime"]
        ),
    )
    bytes = fields.Integer()
    scales_with = fields.String(validate=validate.OneOf(["parameters", "tokens", "fixed"]))
    bytes_per_parameter = fields.Float(allow_none=True)
    formula = fields.String(allow_none=True)
    because = fields.String(allow_none=True, metadata={"description": "The failure it prevents"})
    parts = fields.List(fields.Nested(Part), required=True)


class WholeModel(Answer):
    """One unsharded copy of everything."""

    terms = fields.List(fields.Nested(Term), required=True)
    state_bytes = _bytes("weights + gradients + master weights + optimizer moments")
    activation_bytes = _bytes("What one micro-batch saves for backward through the whole model")
    bytes_per_parameter = fields.Float(metadata={"description": "state_bytes / parameters"})


class Peak(Answer):
    """The largest memory of the fullest GPU within a step."""

    allocated_bytes = _bytes("Handed out by torch's allocator")
    reserved_bytes = _bytes("Held by torch's allocator")
    device_bytes = _bytes("What nvidia-smi would show")
    low_bytes = _bytes("Lower end of the 80 % interval of device_bytes")
    high_bytes = _bytes("Upper end of the 80 % interval of device_bytes")
    moment = fields.String(metadata={"description": "When in the step"})
    confidence = fields.String(validate=validate.OneOf(["high", "medium", "low"]))


class PerGpu(Answer):
    """The fullest GPU."""

    gpus = fields.Integer()
    nodes = fields.Integer()
    layout = fields.Dict(metadata={"description": "tp, sp, pp, vpp, cp, ep, etp, dp, shard, recompute …"})
    stage = fields.Integer(metadata={"description": "Pipeline stage of this GPU"})
    terms = fields.List(fields.Nested(Term))
    peak = fields.Nested(Peak)
    moments = fields.List(fields.Dict())
    stages = fields.List(fields.Dict())
    usable_bytes = _bytes("Memory of the GPU less the margin")
    headroom_bytes = _bytes("usable_bytes less what is needed; negative when it does not fit")
    fits = fields.Boolean()


class Verdict(Answer):
    """The answer in one line."""

    code = fields.String(validate=validate.OneOf(["fits", "tight", "does_not_fit"]))
    text = fields.String()


class Caution(Answer):
    """Something that the caller should know."""

    code = fields.String()
    message = fields.String()


class Estimate(Answer):
    """The answer to one question. Bytes are integers; GB is 10^9 bytes, GiB is 2^30."""

    ONLY_WHEN_ASKED = ("rows",)

    engine_version = fields.String()
    catalog_digest = fields.String()
    request = fields.Dict(metadata={"description": "As it was asked"})
    inputs = fields.Dict(metadata={"description": "Every input: its value and where it came from"})
    model = fields.Dict()
    gpu = fields.Dict()
    whole_model = fields.Nested(WholeModel)
    per_gpu = fields.Nested(PerGpu)
    recommendation = fields.Dict(allow_none=True)
    sharding_floor = fields.Dict(allow_none=True)
    levers = fields.List(fields.Dict())
    time = fields.Dict(allow_none=True)
    verdict = fields.Nested(Verdict)
    comparison = fields.List(fields.Dict(), allow_none=True)
    nearest_fit = fields.Dict(allow_none=True)
    warnings = fields.List(fields.Nested(Caution))
    rows = fields.List(fields.Dict(), metadata={"description": "With `detail=rows`: every tensor behind the terms"})


class Sizing(Estimate):
    """A recorded answer. It never changes."""

    id = fields.String(metadata={"description": "sz_ and 26 characters"})
    recorded_at = fields.String(metadata={"description": "UTC with microseconds"})
    audit = fields.Nested(Audit)


class SizingSummary(Answer):
    """A recorded sizing in a list, members named as in the sizing itself."""

    id = fields.String()
    recorded_at = fields.String()
    requester = fields.String(metadata={"description": "kind:team/id or kind:id"})
    via = fields.String()
    model = fields.Dict()
    gpu = fields.Dict()
    per_gpu = fields.Dict()
    verdict = fields.Nested(Verdict)


class SizingPage(Answer):
    """Summaries, newest first."""

    items = fields.List(fields.Nested(SizingSummary), required=True)
    next = fields.String(allow_none=True, metadata={"description": "Cursor of the page after"})


class SizingQuery(ma.Schema):
    """What recorded sizings are searched by; all filters together."""

    model = fields.String(metadata={"description": "Catalogue id of the model"})
    gpu = fields.String(metadata={"description": "Catalogue id of the GPU"})
    requester = fields.String(metadata={"description": "kind:team/id or kind:id, as in a summary"})
    team = fields.String()
    verdict = fields.String(validate=validate.OneOf(["fits", "tight", "does_not_fit"]))
    since = fields.AwareDateTime(
        format="iso",
        default_timezone=datetime.UTC,
        metadata={"description": "A day or a moment in ISO 8601; UTC unless it says otherwise"},
    )
    cursor = fields.String(metadata={"description": "`next` of the page before"})
    limit = fields.Integer(
        load_default=50, validate=validate.Range(1, 200), metadata={"description": "Items on a page"}
    )


class Batch(ma.Schema):
    """Many questions."""

    requests = fields.List(fields.Dict(), required=True, metadata={"description": "Sizing requests"})


class BatchAnswers(Answer):
    """One answer for each question, in order: a sizing, or an object with a problem document under `error`."""

    results = fields.List(fields.Dict(), required=True)
