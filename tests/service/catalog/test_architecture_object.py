"""The architecture object of a request: usual values, and every problem with its pointer."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.catalog.facts import packaged
from service.catalog.resolve import ResolvedModel, resolve_model
from service.engine.errors import InvalidInput
from service.engine.parameters import count

SMALL = {"layers": 2, "hidden_size": 64, "heads": 4, "vocab_size": 100, "ffn_size": 128}
MOE = {"experts": 8, "top_k": 2, "moe_ffn_size": 32}
MLA = {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8}


def resolved(**keys: Any) -> ResolvedModel:
    return resolve_model(packaged(), {"architecture": {**SMALL, **keys}})


def pointers(architecture: Any) -> set[str]:
    with pytest.raises(InvalidInput) as caught:
        resolve_model(packaged(), {"architecture": architecture})
    return {error.pointer for error in caught.value.errors}


def test_a_described_llama_counts_as_the_published_one() -> None:
    architecture = {
        "layers": 80,
        "hidden_size": 8192,
        "heads": 64,
        "kv_heads": 8,
        "ffn_size": 28672,
        "vocab_size": 128256,
        "max_positions": 131072,
    }
    model = resolve_model(packaged(), {"architecture": architecture})
    assert count(model.architecture) == 70_553_706_496
    assert model.warnings == ()


def test_the_course_model_without_norm_biases() -> None:
    architecture = {
        "layers": 6,
        "hidden_size": 256,
        "heads": 4,
        "ffn_size": 1024,
        "vocab_size": 4096,
        "max_positions": 256,
        "position": "learned",
        "norm": "layernorm-no-bias",
        "activation": "gelu",
        "tied_embeddings": True,
    }
    assert count(resolve_model(packaged(), {"architecture": architecture}).architecture) == 5_836_032


def test_usual_values_of_what_is_left_out() -> None:
    architecture = resolved().architecture
    assert (architecture.kv_heads, architecture.head_dim, architecture.max_positions) == (4, 16, 8192)
    assert (architecture.position, architecture.norm, architecture.activation) == ("rope", "rmsnorm", "swiglu")
    assert (architecture.attention_bias, architecture.mlp_bias, architecture.attention_out_bias) == (False,) * 3
    assert (architecture.norms_per_layer, architecture.head, architecture.qk_norm) == (2, "lm", "none")


def test_bias_of_the_output_projection_and_dropout_of_attention_follow_unless_said() -> None:
    assert resolved(mlp_bias=True).architecture.attention_out_bias
    assert not resolved(mlp_bias=True, attention_out_bias=False).architecture.attention_out_bias
    assert resolved(dropout=0.1).architecture.attention_dropout == 0.1
    assert resolved(dropout=0.1, attention_dropout=0).architecture.attention_dropout == 0.0


@pytest.mark.parametrize(("activation", "width"), [("swiglu", 2816), ("gelu", 4096)])
def test_an_assumed_mlp_width_is_said(activation: str, width: int) -> None:
    keys = {"layers": 2, "hidden_size": 1024, "heads": 8, "vocab_size": 100, "activation": activation}
    model = resolve_model(packaged(), {"architecture": keys})
    assert model.architecture.ffn_size == width
    ((code, message),) = model.warnings
    assert code == "architecture_assumed"
    assert str(width) in message


def test_experts_and_latent_attention_have_the_names_of_the_contract() -> None:
    moe = {**MOE, "shared_experts": 2, "shared_ffn_size": 24, "first_dense_layers": 1, "moe_every": 1}
    architecture = resolved(moe=moe, mla=MLA).architecture
    assert architecture.moe is not None
    assert (architecture.moe.ffn_size, architecture.moe.shared_width) == (32, 48)
    assert architecture.mla is not None
    assert (architecture.head_dim, architecture.mla.q_lora_rank) == (12, None)
    assert architecture.value_width == 4 * 8


def test_a_width_of_null_means_that_every_layer_is_routed() -> None:
    assert resolved(ffn_size=None, moe=MOE).architecture.ffn_size is None
    assert pointers({**SMALL, "ffn_size": None}) == {"/model/architecture/ffn_size"}
    dense_first = {**MOE, "first_dense_layers": 1}
    assert pointers({**SMALL, "ffn_size": None, "moe": dense_first}) == {"/model/architecture/ffn_size"}


@pytest.mark.parametrize("value", ["full", True, False])
def test_three_ways_of_query_and_key_norms(value: object) -> None:
    expected = {"full": "full", True: "head", False: "none"}[value]  # type: ignore[index]
    assert resolved(qk_norm=value).architecture.qk_norm == expected


def test_all_problems_come_at_once() -> None:
    broken = {
        "layers": -1,
        "hidden_size": 10**9,
        "heads": "4",
        "vocab_size": 0,
        "ffn_size": math.nan,
        "dropout": 1.5,
        "norm": "rmsnrm",
        "tied_embeddings": "yes",
        "qk_norm": "half",
        "kv_head": 2,
        "moe": {"experts": 10**9, "top_k": 1, "moe_ffn_size": 8, "expert": 1},
        "mla": [],
    }
    prefix = "/model/architecture/"
    assert pointers(broken) >= {
        prefix + key
        for key in (
            *("layers", "hidden_size", "heads", "vocab_size", "ffn_size", "dropout", "norm", "tied_embeddings"),
            *("qk_norm", "kv_head", "moe/experts", "moe/expert", "mla"),
        )
    }


@pytest.mark.parametrize(
    ("keys", "pointer"),
    [
        ({"hidden_size": 66}, "hidden_size"),
        ({"kv_heads": 3}, "kv_heads"),
        ({"norms_per_layer": 3}, "norms_per_layer"),
        ({"moe": {**MOE, "top_k": 9}}, "moe/top_k"),
        ({"moe": {**MOE, "first_dense_layers": 3}}, "moe/first_dense_layers"),
        ({"mla": MLA, "head_dim": 64}, "head_dim"),
        ({"position": "learnt"}, "position"),
        ({"layers": True}, "layers"),
        ({"layers": 2.5}, "layers"),
    ],
)
def test_contradictions_are_pointed_at(keys: dict[str, Any], pointer: str) -> None:
    assert pointers({**SMALL, **keys}) == {f"/model/architecture/{pointer}"}


def test_unknown_keys_get_the_nearest_spelling() -> None:
    with pytest.raises(InvalidInput) as caught:
        resolved(hiden_size=64)
    (error,) = caught.value.errors
    assert error.suggestions[0] == "hidden_size"


def test_sizes_that_are_possible_alone_and_too_much_together_are_refused() -> None:
    huge = {"layers": 4096, "hidden_size": 2**20, "heads": 2**16, "vocab_size": 2**24, "ffn_size": 2**22}
    assert pointers(huge) == {"/model/architecture"}
