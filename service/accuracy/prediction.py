"""What the engine says about a case: the sizing of its given layout, without the parts that only people read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from service.accuracy.cases import Case
from service.catalog.facts import Catalog, packaged
from service.catalog.resolve import resolve_gpus, resolve_model
from service.engine.errors import InvalidInput
from service.engine.size import Sizing, StageSizing
from service.requests.schemas import load_request
from service.sizings.asking import ask
from service.sizings.inputs import DEFAULT_GPU, settle


class Prediction(NamedTuple):
    """A case with its sizing, or with why it was refused."""

    case: Case
    sizing: Sizing | None
    refusal: str = ""

    @property
    def stage(self) -> StageSizing | None:
        """The pipeline stage that was measured."""
        if self.sizing is None:
            return None
        rank, stages = self.case.rank, self.sizing.stages
        if rank.startswith("stage "):
            number = int(rank.split()[1])
            return stages[number] if number < len(stages) else None
        return stages[-1] if rank == "last stage" else self.sizing.peak

    @property
    def bytes(self) -> int | None:
        """The predicted value of the level that was measured; None for a refusal and where no level was measured."""
        if self.stage is None or self.case.is_verdict:
            return None
        return level_bytes(self.stage, self.case.kind)

    @property
    def error(self) -> float:
        """Predicted over measured, less one; a refusal is 100 % off."""
        if self.bytes is None or not self.case.bytes:
            return -1.0
        return self.bytes / self.case.bytes - 1


def level_bytes(stage: StageSizing, level: str) -> int:
    """One of the three levels of memory of a stage."""
    return {
        "allocated": stage.allocated_bytes,
        "reserved": stage.reserved_bytes,
        "device": stage.device_bytes,
    }[level]


def predictions(cases: Iterable[Case]) -> Iterator[Prediction]:
    """Size every case; a refusal is a prediction too."""
    catalog = packaged()
    for case in cases:
        try:
            yield Prediction(case, sized(case, catalog))
        except InvalidInput as refused:
            yield Prediction(case, None, "; ".join(f"{error.pointer}: {error.detail}" for error in refused.errors))


def sized(case: Case, catalog: Catalog) -> Sizing:
    """The sizing of the layout that a case gives."""
    request = load_request(case.request)
    architecture = resolve_model(catalog, request.model).architecture
    gpu = resolve_gpus(catalog, request.gpu if request.gpu is not None else DEFAULT_GPU)[0].gpu
    asked = ask(request, settle(request, architecture, gpu), architecture, gpu)
    if asked.plan is None:
        raise ValueError(f"{case.id} gives no layout")
    return asked.plan.size()
