"""80 % intervals: from residuals where there are enough, else from the level below and the quantities between."""

from __future__ import annotations

import pytest

from service.accuracy.calibration import bounds, module_text, table
from service.accuracy.cases import packaged, trusted
from service.accuracy.prediction import Prediction, predictions
from service.engine import residuals
from service.engine.hardware import Gpu
from service.engine.intervals import intervals
from service.engine.layout import Layout
from service.engine.quantities import GIB, Residual
from service.engine.run import Run
from service.engine.runtime import beside_torch_bounds
from service.engine.stacks import STACKS

H100 = Gpu(id="h", name="H100", vendor="NVIDIA", memory_bytes=80 * GIB, compute_capability="9.0")
VALUES = {"allocated": 40 * GIB, "reserved": 42 * GIB, "device": 44 * GIB}
TABLE = {name: {"allocated": Residual(900, 1100, 20, 3)} for name in STACKS}
POOLED = {"allocated": Residual(800, 1300, 50, 9)}
RUN = Run(sequence_length=1)


def test_a_level_with_residuals_is_its_prediction_times_their_bounds() -> None:
    found = intervals(VALUES, Layout(), RUN, STACKS["megatron"], H100, residuals=TABLE, pooled=POOLED)
    assert found["allocated"] == (36 * GIB, 44 * GIB)


def test_a_level_without_residuals_widens_the_level_below_by_the_quantities_between() -> None:
    found = intervals(VALUES, Layout(dp=8), RUN, STACKS["megatron"], H100, residuals=TABLE, pooled=POOLED)
    least, most = beside_torch_bounds(Layout(dp=8), RUN, STACKS["megatron"], H100)
    assert found["device"].low == found["reserved"].low + least
    assert found["device"].high == found["reserved"].high + most
    assert found["reserved"].low >= found["allocated"].low


def test_a_stack_without_any_residuals_takes_those_of_all_stacks() -> None:
    empty: dict[str, dict[str, Residual]] = {name: {} for name in STACKS}
    found = intervals(VALUES, Layout(), RUN, STACKS["reference"], H100, residuals=empty, pooled=POOLED)
    assert found["allocated"] == (32 * GIB, 52 * GIB)


def test_a_device_shows_no_more_than_its_memory() -> None:
    values = {"allocated": 75 * GIB, "reserved": 77 * GIB, "device": 79 * GIB}
    found = intervals(values, Layout(), RUN, STACKS["huggingface"], H100)
    assert found["device"].high == 80 * GIB


def test_what_a_run_that_does_not_fit_would_need_is_not_bounded_by_the_device() -> None:
    values = {"allocated": 100 * GIB, "reserved": 105 * GIB, "device": 107 * GIB}
    tenth = {"huggingface": {level: Residual(900, 1100, 20, 3) for level in values}}
    found = intervals(values, Layout(), RUN, STACKS["huggingface"], H100, residuals=tenth)
    assert found["device"] == (107 * GIB * 9 // 10, 107 * GIB * 11 // 10)


@pytest.fixture(scope="module")
def found() -> list[Prediction]:
    return list(predictions(trusted(packaged())))


def test_bounds_hold_four_of_five_sources_and_are_never_under_three_per_cent(found: list[Prediction]) -> None:
    golden = [one for one in found if one.case.source == "megatron-golden"]
    made = bounds(golden)
    assert made.low <= 970
    assert made.high >= 1030
    assert made.cases == len(golden)


def test_the_committed_module_is_what_the_committed_script_makes(found: list[Prediction]) -> None:
    text = module_text(table(found))
    committed = {key: value for key, value in vars(residuals).items() if key in ("RESIDUALS", "POOLED")}
    made: dict[str, object] = {}
    exec(compile(text, "residuals", "exec"), made)
    for name, before in committed.items():
        now = made[name]
        rows = [(before, now)] if name == "POOLED" else [(before[stack], now[stack]) for stack in STACKS]  # type: ignore[index]
        for old, new in rows:
            assert old.keys() == new.keys()
            for level in old:
                assert new[level][:2] == pytest.approx(old[level][:2], abs=15)
