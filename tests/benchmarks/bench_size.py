"""How long one sizing takes, beside the calls that others publish (SimuMax 27 ms for 12 layers, 83 to 117 ms for 80).

Run by `make bench`; nothing here asserts seconds. What is asserted is a ratio inside one run: a model ten times as deep
costs about the same, because layers of a kind are one set of rows.
"""

from __future__ import annotations

import time
from dataclasses import replace

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Run
from service.engine.size import size
from service.engine.stacks import STACKS, RecipeRequest, recipe

H100 = Gpu(id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, compute_capability="9.0")
LLAMA_70B = Architecture(
    layers=80, hidden_size=8192, heads=64, kv_heads=8, head_dim=128, ffn_size=28672, vocab_size=128256,
    max_positions=131072,
)  # fmt: skip
SIMUMAX_12_LAYERS_MS = 27.0
ROUNDS, PER_ROUND = 15, 20


def per_sizing_ms(architecture: Architecture, stack: str) -> float:
    """The best of several rounds: the machine's other work only ever adds."""
    chosen = STACKS[stack]
    layout = Layout(dp=8, shard=chosen.shard)
    made = recipe(chosen, RecipeRequest(), sharded=chosen.shard == "parameters")
    run = Run(sequence_length=8192, kernels=chosen.kernels, loss=chosen.loss)
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(PER_ROUND):
            size(architecture, made, layout, run, chosen, H100)
        rounds.append((time.perf_counter() - start) / PER_ROUND * 1000)
    return min(rounds)


def test_one_sizing_beside_published_calls() -> None:
    for stack in STACKS:
        deep = per_sizing_ms(LLAMA_70B, stack)
        shallow = per_sizing_ms(replace(LLAMA_70B, layers=8), stack)
        print(f"{stack:12} {deep:6.2f} ms a sizing, {SIMUMAX_12_LAYERS_MS / deep:5.0f} times below a SimuMax call")
        assert deep < 2 * shallow
