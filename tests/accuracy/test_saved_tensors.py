"""What the engine says is saved and allocated, against what torch's autograd really kept and allocated."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from service.catalog.hf_config import read
from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Recompute, Run
from service.engine.size import size
from service.engine.stacks import STACKS, RecipeRequest, recipe

DATA = Path(__file__).parent / "data"
CARD = Gpu(id="any", name="any", vendor="NVIDIA", memory_bytes=1 << 45)


class Case(NamedTuple):
    """One measured run of Hugging Face code on one device."""

    family: str
    config: int
    precision: str
    attention: str
    recompute: str
    micro_batch: int
    sequence_length: int
    saved_bytes: int | None
    allocated_bytes: int | None


@cache
def measured(name: str) -> tuple[list[Architecture], dict[str, list[Case]]]:
    """Architectures of a file of measurements, and its cases by family."""
    told = json.loads((DATA / f"{name}.json").read_text())
    families = [config["model_type"] for config in told["configs"]]
    cases = defaultdict(list)
    for config, *rest in told["cases"]:
        cases[families[config]].append(Case(families[config], config, *rest))
    return [read(config).architecture for config in told["configs"]], dict(cases)


@cache
def sized(name: str, case: Case) -> tuple[int, int]:
    """Saved and allocated bytes of one case, as the engine has them."""
    architecture, stack = measured(name)[0][case.config], STACKS["huggingface"]
    moments = "bf16" if case.precision == "bf16" else None
    run = Run(
        sequence_length=case.sequence_length,
        micro_batch=case.micro_batch,
        attention=case.attention,
        recompute=Recompute(kind=case.recompute),
        optimizer_impl="foreach",
    )
    made = recipe(stack, RecipeRequest(precision=case.precision, moments_dtype=moments), sharded=False)
    stage = size(architecture, made, Layout(), run, stack, CARD).stages[0]
    return stage.saved_bytes, stage.allocated_bytes


FAMILIES = [(name, family) for name in ("saved_tensors", "more_families") for family in sorted(measured(name)[1])]


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_saved_bytes_are_what_autograd_keeps(name: str, family: str) -> None:
    wrong = []
    for case in measured(name)[1][family]:
        if case.saved_bytes is not None:
            told, _ = sized(name, case)
            if abs(told / case.saved_bytes - 1) > 0.0005:
                wrong.append((case, told))
    assert not wrong


@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_the_peak_of_a_step_is_what_torch_allocates(name: str, family: str) -> None:
    wrong = []
    for case in measured(name)[1][family]:
        if case.allocated_bytes is not None:
            _, told = sized(name, case)
            if abs(told / case.allocated_bytes - 1) > 0.006:
                wrong.append((case, told))
    assert not wrong


def test_most_cases_of_the_measured_architectures_are_exact_to_the_byte() -> None:
    cases = measured("saved_tensors")[1]
    told = [case for family in cases.values() for case in family if case.saved_bytes is not None]
    exact = [case for case in told if sized("saved_tensors", case)[0] == case.saved_bytes]
    assert len(told) == 819
    assert len(exact) >= 0.99 * len(told)
