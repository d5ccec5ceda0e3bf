"""Peaks that somebody measured: one run of each kind, to the per cent that its tensors are understood."""

from __future__ import annotations

import pytest

from service.accuracy.cases import packaged
from service.accuracy.prediction import sized
from service.catalog.facts import packaged as catalog
from service.engine.ledger import TERMS
from service.engine.size import Sizing

CASES = {case.id: case for case in packaged()}


def sizing(case: str) -> Sizing:
    return sized(CASES[case], catalog())


@pytest.mark.parametrize(
    ("case", "stage", "measured_bytes", "within"),
    [
        # Megatron golden tests: dense with dropout on three GPUs, unfused attention, uneven interleaved chunks
        ("mlm-gold-004", 3, 60_480_000_000, 0.002),
        ("mlm-gold-007", 0, 58_188_115_968, 0.002),
        ("mlm-gold-057", 0, 4_735_983_616, 0.002),
        ("mlm-gold-059", 3, 2_746_575_872, 0.002),
        # SimuMax on B200: 70B slice over two stages, DeepSeek-V3 slice over eight expert ranks
        ("simumax-003", 0, 65_154_691_645, 0.01),
        ("simumax-013", 0, 111_991_272_243, 0.01),
        # fms-acceleration: logits in place, fused loss with 4-bit base, FSDP with hooks on frozen inputs, the step
        ("fms-l-204", 0, 74_400_000_000, 0.002),
        ("fms-l-051", 0, 74_119_324_369, 0.01),
        ("fms-l-293", 0, 56_210_000_000, 0.01),
        ("fms-a-023", 0, 36_230_000_000, 0.002),
    ],
)
def test_peaks_that_were_measured(case: str, stage: int, measured_bytes: int, within: float) -> None:
    assert CASES[case].bytes == pytest.approx(measured_bytes, rel=0.002)
    assert sizing(case).stages[stage].allocated_bytes == pytest.approx(measured_bytes, rel=within)


@pytest.mark.parametrize("case", ["mlm-gold-004", "titan-009", "fms-l-293", "bsci-200b-069", "bridge-001"])
def test_terms_add_up_at_every_instant_and_on_every_stage(case: str) -> None:
    for stage in sizing(case).stages:
        sums = [
            sum(int(bundle.bytes * bundle.alive[instant]) for bundle in stage.bundles) for instant in range(7)
        ]  # fmt: skip
        assert max(sums) == sums[stage.instant] == stage.allocated_bytes
        assert {bundle.term for bundle in stage.bundles} <= set(TERMS)
        assert stage.allocated_bytes <= stage.reserved_bytes <= stage.device_bytes


def test_the_fullest_stage_decides() -> None:
    found = sizing("bsci-200b-069")
    assert found.peak.device_bytes == max(stage.device_bytes for stage in found.stages)


def test_a_fused_loss_never_has_logits() -> None:
    fused = sizing("fms-l-051")
    names = {row.name for bundle in fused.peak.bundles for row in bundle.rows}
    assert not any(name.startswith("log-softmax") for name in names)


def test_more_sequence_is_never_less_memory() -> None:
    found = [sizing(case).peak.allocated_bytes for case in ("fms-l-047", "fms-l-051")]
    assert found == sorted(found)
