"""A table of layouts and a single sizing are one set of formulas: they must agree to the byte."""

import random
from dataclasses import replace

import numpy as np
import pytest

from service.engine.architecture import Architecture, LatentAttention, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.question import Question
from service.engine.run import Run
from service.engine.search import space
from service.engine.search.bound import least_bytes
from service.engine.search.evaluate import needed_bytes
from service.engine.search.minimum import grid
from service.engine.search.plans import plan_of
from service.engine.search.ranking import with_hybrids
from service.engine.stacks import STACKS, RecipeRequest

H100 = Gpu(
    id="h100", name="H100", vendor="NVIDIA", memory_bytes=85_028_896_768, architecture="Hopper",
    compute_capability="9.0", dense_tflops={"bf16": 989.5}, memory_gb_s=3350, interconnect_gb_s=900,
)  # fmt: skip
DENSE = Architecture(
    layers=12, hidden_size=1024, heads=16, kv_heads=4, head_dim=64, ffn_size=4096, vocab_size=32_001,
    max_positions=8192,
)  # fmt: skip
TIED = replace(DENSE, tied_embeddings=True, norm="layernorm", activation="gelu", kv_heads=16, dropout=0.1)
SLIDING = replace(DENSE, sliding_window=1024, sliding_layers=(0, 2, 4, 6, 8, 10))
MIXTURE = replace(
    DENSE, ffn_size=None,
    moe=MixtureOfExperts(experts=16, top_k=2, ffn_size=1536, shared_experts=1, shared_ffn_size=1024),
)  # fmt: skip
LATENT = replace(
    DENSE,
    kv_heads=16,
    head_dim=96,
    moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=512, shared_experts=1, shared_ffn_size=512, first_dense_layers=3),
    mla=LatentAttention(
        kv_lora_rank=128, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, q_lora_rank=256
    ),
)  # fmt: skip
MODELS = {"dense": DENSE, "tied": TIED, "sliding": SLIDING, "mixture": MIXTURE, "latent": LATENT}


def question(model: str, stack: str, **changes: object) -> Question:
    run = Run(
        sequence_length=4096, loss=STACKS[stack].loss, kernels=STACKS[stack].kernels,
        optimizer_impl=STACKS[stack].optimizer_impl, fsdp_version=STACKS[stack].fsdp_version,
        cp_comm=STACKS[stack].cp_comm,
    )  # fmt: skip
    asked = Question(architecture=MODELS[model], stack=STACKS[stack], gpu=H100, recipe=RecipeRequest(), run=run)
    return replace(asked, **changes)


CASES = [(model, stack) for model in MODELS for stack in STACKS]


@pytest.mark.parametrize(("model", "stack"), CASES)
@pytest.mark.parametrize("changes", [{}, {"global_batch": 96, "micro_batch": 2}], ids=["free", "global batch"])
def test_a_table_needs_what_each_single_sizing_needs(model: str, stack: str, changes: dict[str, int]) -> None:
    asked = question(model, stack, **changes)
    layouts = grid(asked, np.asarray([1, 2, 8, 12, 48])).layouts()
    every = with_hybrids(asked, space.variants(asked, layouts, space.shards(asked), interleave=True))
    tried, needed, least = every.layouts, needed_bytes(asked, every.layouts), least_bytes(asked, layouts, every)
    assert (least <= needed).all()
    for index in random.Random(f"{model} {stack}").sample(range(len(tried)), min(5, len(tried))):
        sizing = plan_of(asked, tried, index).size()
        assert (tried.row(index), int(needed[index])) == (tried.row(index), sizing.needed_bytes)


@pytest.mark.parametrize("precision", ["fp32", "amp", "bf16", "fp8", "fp16-mixed"])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_recipes_of_every_kind_agree_too(precision: str, method: str) -> None:
    recipe = RecipeRequest(precision=precision, method=method)  # type: ignore[arg-type]
    asked = question("dense", "huggingface", recipe=recipe)
    layouts = grid(asked, np.asarray([1, 2, 16])).layouts()
    tried = space.variants(asked, layouts, space.shards(asked), interleave=True).layouts
    needed = needed_bytes(asked, tried)
    for index in range(0, len(tried), 5):
        assert int(needed[index]) == plan_of(asked, tried, index).size().needed_bytes


@pytest.mark.parametrize(("model", "stack"), CASES)
def test_memory_only_falls_as_a_family_gets_more_replicas(model: str, stack: str) -> None:
    asked = question(model, stack)
    found = grid(asked, np.asarray([2, 4, 8, 16, 64, 256]))
    tried = space.variants(asked, found.layouts(), space.shards(asked), interleave=False)
    rows, _ = np.nonzero(found.dp)
    needed = needed_bytes(asked, tried.layouts)
    latest: dict[tuple[int, ...], int] = {}
    for index in np.argsort(tried.layouts.dp, kind="stable"):
        layouts = tried.layouts
        if layouts.dp[index] * layouts.cp[index] == 1:
            continue
        key = (int(rows[tried.of[index]]), int(layouts.shard[index]), int(layouts.recompute[index]))
        assert needed[index] <= latest.get(key, needed[index])
        latest[key] = int(needed[index])
