"""Reading config.json: both spellings, class defaults, nested text models, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from service.catalog.facts import packaged
from service.catalog.hf_config import read
from service.engine.architecture import Architecture
from service.engine.errors import FieldError, InvalidInput
from service.engine.parameters import count

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 256,
}


def architecture(**config: Any) -> Architecture:
    return read({**LLAMA, **config}).architecture


def errors(config: Any) -> dict[str, FieldError]:
    with pytest.raises(InvalidInput) as caught:
        read(config)
    return {error.pointer: error for error in caught.value.errors}


def codes(config: dict[str, Any]) -> list[str]:
    return [code for code, _ in read(config).warnings]


def test_one_architecture_for_two_spellings() -> None:
    moe = {"model_type": "qwen3_moe", "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    old = architecture(**moe, num_experts=8, rope_theta=10000.0, torch_dtype="bfloat16")
    rope = {"rope_theta": 10000.0, "rope_type": "default"}
    new = architecture(**moe, num_local_experts=8, rope_parameters=rope, dtype="bfloat16")
    assert old == new


def test_two_spellings_that_differ_are_refused() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "hidden_size": 128}
    assert "differ" in errors(gpt2)["/model/hf_config/n_embd"].detail


def test_partial_rotary_is_read_from_either_place() -> None:
    neox = {"model_type": "gpt_neox"}
    assert architecture(**neox).rotary_fraction == 0.25
    assert architecture(**neox, rotary_pct=0.5).rotary_fraction == 0.5
    assert architecture(**neox, rope_parameters={"partial_rotary_factor": 1.0}).rotary_fraction == 1.0


def test_absent_sizes_are_those_of_the_class_and_said() -> None:
    reading = read({"model_type": "mistral"})
    assert (reading.architecture.layers, reading.architecture.kv_heads) == (32, 8)
    ((code, message),) = reading.warnings
    assert code == "hf_config_defaults"
    assert "hidden_size 4096" in message
    assert codes(LLAMA) == []


def test_a_null_where_the_class_has_a_number_derives_it_as_the_class_does() -> None:
    assert architecture(model_type="mistral", num_key_value_heads=None).kv_heads == 4


@pytest.mark.parametrize("name", ["gemma-3-12b", "llama-4-scout", "qwen3-vl-8b", "qwen2.5-vl-7b", "gemma-4-31b"])
def test_the_text_model_inside_a_vision_language_model_is_sized(name: str) -> None:
    fact = packaged().models[name]
    reading = read(fact.config)
    assert count(reading.architecture) == fact.text_parameters
    assert reading.architecture.code.endswith("_text")
    assert "text_model_only" in [code for code, _ in reading.warnings]


def test_errors_inside_a_text_config_point_inside() -> None:
    config = {"model_type": "gemma3", "text_config": {"hidden_size": -1}}
    assert set(errors(config)) == {"/model/hf_config/text_config/hidden_size"}


def test_an_unknown_model_around_a_known_text_model_is_read_with_a_note() -> None:
    config = {"model_type": "llava_next", "text_config": LLAMA}
    assert read(config).architecture == architecture()
    assert codes(config) == ["text_model_only"]


def test_a_text_config_where_there_is_none_is_passed_over_with_a_note() -> None:
    config = {**LLAMA, "text_config": {"hidden_size": 1}}
    assert read(config).architecture == architecture()
    assert codes(config) == ["text_config_ignored"]


def test_unknown_and_unsupported_model_types_are_refused_by_name() -> None:
    unknown = errors({"model_type": "lama"})["/model/hf_config/model_type"]
    assert "lama" in unknown.detail
    assert "llama" in unknown.suggestions
    mamba = errors({"model_type": "mamba"})["/model/hf_config/model_type"]
    assert "state-space" in mamba.detail


def test_every_model_type_of_the_catalogue_is_read_or_refused_with_its_reason() -> None:
    for fact in packaged().models.values():
        if not fact.supported and fact.model_type:
            error = errors({"model_type": fact.model_type})["/model/hf_config/model_type"]
            assert "cannot be sized" in error.detail, fact.model_type


@pytest.mark.parametrize("config", [None, 5, "llama", [], {}, {"model_type": None}, {"model_type": ["llama"]}])
def test_what_is_no_config_is_refused(config: object) -> None:
    assert errors(config)


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"num_hidden_layers": -2}, "num_hidden_layers"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": 10**30}, "hidden_size"),
        ({"hidden_size": math.nan}, "hidden_size"),
        ({"hidden_size": 64.5}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": [64]}, "hidden_size"),
        ({"hidden_size": 66}, "hidden_size"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"attention_dropout": 2}, "attention_dropout"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"hidden_act": "sin"}, "hidden_act"),
        ({"hidden_act": {"a": []}}, "hidden_act"),
    ],
)
def test_a_value_that_cannot_be_is_named(said: dict[str, Any], key: str) -> None:
    assert set(errors({**LLAMA, **said})) == {f"/model/hf_config/{key}"}


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"model_type": "qwen3_moe", "num_experts": 10**9}, "num_experts"),
        ({"model_type": "mixtral", "num_experts_per_tok": 9}, "num_experts_per_tok"),
        ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["full_attention"]}, "layer_types"),
        ({"model_type": "gemma2", "layer_types": ["full_attention", "slidin_attention"]}, "layer_types"),
        ({"model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]}, "attention_types"),
        ({"model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [1, 2]}, "moe_topk"),
        ({"model_type": "gpt2", "add_cross_attention": True}, "add_cross_attention"),
        ({"model_type": "phi", "rope_parameters": {"partial_rotary_factor": 7}}, "partial_rotary_factor"),
    ],
)
def test_switches_of_families_are_checked_too(config: dict[str, Any], key: str) -> None:
    assert f"/model/hf_config/{key}" in errors({**LLAMA, **config})


def test_all_problems_come_at_once() -> None:
    broken = {**LLAMA, "hidden_size": -1, "vocab_size": "x", "attention_dropout": 5, "attention_bias": 3}
    assert set(errors(broken)) == {
        f"/model/hf_config/{key}" for key in ("hidden_size", "vocab_size", "attention_dropout", "attention_bias")
    }


def test_sizes_that_are_possible_alone_and_too_much_together_are_refused() -> None:
    huge = {**LLAMA, "num_hidden_layers": 4096, "hidden_size": 2**20, "intermediate_size": 2**20}
    assert set(errors(huge)) == {"/model/hf_config"}


def test_a_name_of_its_own_for_the_code_of_another_family_is_read_as_that_family() -> None:
    """XiaomiMiMo/MiMo-7B-Base without its MTP layer: 7,622,619,136, as the catalogue's row counts it."""
    mimo = {
        "model_type": "mimo",
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 11008,
        "vocab_size": 151680,
        "max_position_embeddings": 32768,
        "attention_bias": True,
        "use_sliding_window": False,
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": False,
    }
    assert count(read(mimo).architecture) == 7_622_619_136
    assert read(mimo).architecture.code == "qwen2"


def test_multi_token_prediction_is_left_out_and_said() -> None:
    config = packaged().models["deepseek-v3"].config
    assert read(config).architecture.mtp_layers == 0
    assert "mtp_left_out" in [code for code, _ in read(config).warnings]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "gemma2"}, {"attention_softcap": True, "logit_softcap": True, "norms_per_layer": 4}),
        ({"model_type": "gemma2", "num_hidden_layers": 4}, {"sliding_layers": (0, 2), "sliding_window": 4096}),
        ({"model_type": "gemma3_text", "num_hidden_layers": 12}, {"sliding_layers": (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)}),
        ({"model_type": "gpt_oss", "num_hidden_layers": 2}, {"attention_sinks": True, "sliding_layers": (0,)}),
        ({"model_type": "cohere2", "num_hidden_layers": 4}, {"nope_layers": (3,), "sliding_layers": (0, 1, 2)}),
        ({"model_type": "llama4_text", "num_hidden_layers": 4}, {"nope_layers": (3,), "qk_norm": "unweighted"}),
        ({"model_type": "olmo2"}, {"norm_placement": "branch", "qk_norm": "full"}),
        ({"model_type": "bert"}, {"norm_placement": "post", "dropout": 0.1, "token_types": 2, "head": "masked-lm"}),
        ({"model_type": "gpt2"}, {"fused_qkv": True, "activation_function": "gelu_new", "position": "learned"}),
        ({"model_type": "falcon"}, {"kv_heads": 1, "parallel_block": True, "norms_per_layer": 1}),
        ({"model_type": "bloom"}, {"position": "alibi", "embedding_norm": True}),
        ({"model_type": "opt"}, {"position_offset": 2, "activation": "relu", "dropout": 0.1}),
        ({"model_type": "t5"}, {"encoder_layers": 6, "relative_buckets": 32, "ffn_dropout": 0.1}),
        ({"model_type": "modernbert"}, {"first_attention_norm": False, "activation": "geglu"}),
        ({"model_type": "olmo"}, {"norm": "layernorm-no-weight"}),
        ({"model_type": "phi3"}, {"fused_qkv": True, "fused_gate_up": True}),
    ],
)
def test_what_activations_depend_on_is_read(config: dict[str, Any], expected: dict[str, Any]) -> None:
    read_as = read(config).architecture
    assert {name: getattr(read_as, name) for name in expected} == expected
