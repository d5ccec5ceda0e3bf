"""The sharding floor: what endless data-parallel sharding leaves, and up to how many GPUs doubling still helps."""

from dataclasses import replace

import numpy as np
import pytest

from service.engine.architecture import Architecture
from service.engine.floor import ENDLESS, floor, floor_bytes, needed_by_replicas, sharded
from service.engine.hardware import Gpu
from service.engine.ledger import STATE_TERMS
from service.engine.question import Plan, Question, plan
from service.engine.run import Recompute, Run
from service.engine.stacks import STACKS, RecipeRequest

GIB = 1 << 30
H100 = Gpu(id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, compute_capability="9.0")
LLAMA_8B = Architecture(
    layers=32, hidden_size=4096, heads=32, kv_heads=8, head_dim=128, ffn_size=14_336, vocab_size=128_256,
    max_positions=131_072,
)  # fmt: skip


def laid_out(stack: str = "reference", **changes: object) -> Plan:
    question = Question(
        architecture=LLAMA_8B, stack=STACKS[stack], gpu=H100, recipe=RecipeRequest(), run=Run(sequence_length=8192)
    )
    degrees = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 8, "shard": "parameters", "micro_batch": 1}
    return plan(question, **({"recompute": Recompute()} | degrees | changes))  # type: ignore[arg-type]


def test_no_state_is_left_at_the_floor_and_all_activations_are() -> None:
    made = laid_out()
    found = floor(made)
    line, instant = found.stage.line, found.stage.instant
    assert all(line.terms[term][instant] <= 2000 for term in STATE_TERMS)
    assert found.stage.saved_bytes == made.size().peak.saved_bytes


def test_the_floor_is_the_limit_of_ever_more_replicas() -> None:
    made = laid_out()
    needed = needed_by_replicas(made, np.asarray([2, 8, 64, 4096, 1 << 30]))
    assert list(needed) == sorted(needed, reverse=True)
    assert abs(int(needed[-1]) - floor(made).bytes_per_gpu) < GIB // 1000
    assert floor(made).bytes_per_gpu == floor_bytes(made)


@pytest.mark.parametrize("dp", [1, 2, 8, 24])
def test_the_array_of_replicas_is_the_single_sizing_of_each(dp: int) -> None:
    made = laid_out()
    assert int(needed_by_replicas(made, np.asarray([dp]))[0]) == sharded(made, dp).size().needed_bytes


def test_help_ends_with_the_last_doubling_that_saves_a_gibibyte() -> None:
    """16 B × 8.03e9 parameters are 119.7 GiB: from 32 to 64 ranks a doubling saves 1.87 GiB, from 64 to 128 0.94."""
    assert floor(laid_out()).helps_until_gpus == 64


def test_help_counts_gpus_not_replicas() -> None:
    """Half of everything is sharded over tp = 2: 59.8 GiB a rank, so the last useful doubling is to 32 replicas."""
    assert floor(laid_out(tp=2, dp=4)).helps_until_gpus == 2 * 32


def test_the_floor_keeps_what_the_layout_decides() -> None:
    none, full = laid_out(), laid_out(recompute=Recompute(kind="full"))
    assert floor_bytes(full) < floor_bytes(none)
    assert floor_bytes(laid_out(micro_batch=2)) > floor_bytes(none)
    assert floor_bytes(laid_out(dp=2)) == floor_bytes(laid_out(dp=512))


def test_endless_sharding_stays_within_64_bits() -> None:
    made = replace(laid_out(), question=replace(laid_out().question, global_batch=1024))
    assert 0 < floor_bytes(made) < H100.memory_bytes
    assert ENDLESS * 1024 < 1 << 63
