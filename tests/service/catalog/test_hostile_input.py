"""Whatever is asked, the catalogue answers or says InvalidInput, in bounded time."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.catalog.facts import packaged
from service.catalog.hf_config import supported_model_types
from service.catalog.resolve import resolve_gpus, resolve_model
from service.engine.errors import InvalidInput
from service.engine.parameters import count

SLOWEST_S = 2.0
RELAXED = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["silu", "gelu", "sliding_attention", "sparse", "full", "c2p|p2c"])
    | st.integers(min_value=1, max_value=64)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
names = st.text(max_size=60) | st.text(alphabet="0123456789.bBmMxX -_:/ahlqg", max_size=40)


def keys_of(model_type: str) -> list[str]:
    """Keys that real configs of this family have, so that hostile values land where they are read."""
    configs = [fact.config for fact in packaged().models.values() if fact.model_type == model_type]
    nested = [config.get("text_config", {}) for config in configs]
    usual = ("layer_types", "mlp_layer_types", "rope_parameters", "head_dim", "text_config", "tie_word_embeddings")
    return sorted({key for config in (*configs, *nested) for key in config} | set(usual))


@st.composite
def hostile_configs(draw: st.DrawFn) -> dict[str, Any]:
    model_type = draw(st.sampled_from(supported_model_types()))
    config = draw(st.dictionaries(st.sampled_from(keys_of(model_type)), values, max_size=8))
    return {**config, "model_type": model_type}


def only_invalid_input(spec: Any) -> None:
    started = time.perf_counter()
    with contextlib.suppress(InvalidInput):
        resolved = resolve_model(packaged(), spec)
        assert 0 < count(resolved.architecture) < 2**62
    assert time.perf_counter() - started < SLOWEST_S


@RELAXED
@given(names | values)
def test_any_model(spec: Any) -> None:
    only_invalid_input(spec)


@RELAXED
@given(hostile_configs())
def test_any_config(config: dict[str, Any]) -> None:
    only_invalid_input({"hf_config": config})


@RELAXED
@given(
    st.dictionaries(
        st.sampled_from(["layers", "hidden_size", "heads", "kv_heads", "vocab_size", "ffn_size", "moe", "mla", "norm"]),
        values | st.dictionaries(st.sampled_from(["experts", "top_k", "moe_ffn_size", "kv_lora_rank"]), values),
    )
)
def test_any_architecture(architecture: dict[str, Any]) -> None:
    only_invalid_input({"architecture": architecture})


@RELAXED
@given(names | values | st.dictionaries(st.sampled_from(["memory_bytes", "dense_tflops", "gpus_per_node"]), values))
def test_any_gpu(spec: Any) -> None:
    with contextlib.suppress(InvalidInput):
        assert resolve_gpus(packaged(), spec)[0].gpu.memory_bytes > 0


@pytest.mark.parametrize("text", ["9" * 100_000, "a-" * 50_000, "8x" * 50_000 + "7b", " " * 100_000, "7b " * 30_000])
def test_long_names_take_no_time(text: str) -> None:
    started = time.perf_counter()
    for resolve in (resolve_model, resolve_gpus):
        with pytest.raises(InvalidInput) as caught:
            resolve(packaged(), text)
        assert all(len(error.detail) < 200 for error in caught.value.errors)
    assert time.perf_counter() - started < SLOWEST_S


def test_the_largest_config_that_is_allowed_is_read_in_bounded_time() -> None:
    layers = 4096
    only_invalid_input(
        {
            "hf_config": {
                "model_type": "gemma3n_text",
                "num_hidden_layers": layers,
                "hidden_size": 256,
                "vocab_size": 1000,
                "vocab_size_per_layer_input": 16,
                "intermediate_size": [64 + position % 64 for position in range(layers)],
                "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
                "num_kv_shared_layers": 0,
            }
        }
    )
