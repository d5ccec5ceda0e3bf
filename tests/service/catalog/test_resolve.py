"""What people call a model, and what they get."""

from __future__ import annotations

import pytest

from service.catalog.facts import packaged
from service.catalog.resolve import resolve_model
from service.engine.errors import FieldError, InvalidInput
from service.engine.parameters import count


def refused(spec: object) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidInput) as caught:
        resolve_model(packaged(), spec)
    return caught.value.errors


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("llama-3.1-70b", "llama-3.1-70b"),
        ("Llama 3.1 70B", "llama-3.1-70b"),
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("llama3.1:70b", "llama-3.1-70b"),
        ("llama3.1:70b-instruct-q4_K_M", "llama-3.1-70b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b"),
        ("Qwen/Qwen2.5-72B-Instruct-AWQ", "qwen2.5-72b"),
        ("gemma-2-9b-it-GGUF", "gemma-2-9b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("Qwen3-8B-Base", "qwen3-8b"),
        ("deepseek v3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2.5-32b"),
        ("gpt2", "gpt2"),
        ("LLAMA—3.1—70B", "llama-3.1-70b"),
    ],
)
def test_spellings_that_people_use(said: str, meant: str) -> None:
    resolved = resolve_model(packaged(), said)
    assert (resolved.id, resolved.source, resolved.parameters) == (meant, "request", None)


def test_every_id_and_repository_finds_its_own_model() -> None:
    catalog = packaged()
    for fact in catalog.models.values():
        if fact.supported:
            for spelling in (fact.id, *fact.repos):
                assert resolve_model(catalog, spelling).id == fact.id, spelling


@pytest.mark.parametrize("said", ["70B", "70b", "70 B", "70bn", "70billion", "~70B", "７０Ｂ"])
def test_a_bare_size_takes_the_default_and_says_which_and_which_others(said: str) -> None:
    resolved = resolve_model(packaged(), said)
    assert (resolved.id, resolved.source) == ("llama-3.1-70b", "default")
    assert {"llama-2-70b", "llama-3.3-70b"} <= set(resolved.alternatives)
    ((code, message),) = resolved.warnings
    assert code == "bare_size"
    assert "Llama 3.1 70B" in message
    assert "llama-2-70b" in message


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("0.5B", "qwen2.5-0.5b"),
        ("1B", "llama-3.2-1b"),
        ("4B", "qwen3-4b"),
        ("7B", "llama-2-7b"),
        ("8B", "llama-3.1-8b"),
        ("13b", "llama-2-13b"),
        ("20B", "gpt-neox-20b"),
        ("32B", "qwen3-32b"),
        ("120B", "gpt-oss-120b"),
        ("340M", "bert-large-uncased"),
        ("340B", "nemotron-4-340b"),
        ("405B", "llama-3.1-405b"),
        ("671B", "deepseek-v3"),
        ("1T", "kimi-k2"),
        ("8x7B", "mixtral-8x7b"),
        ("8×22b", "mixtral-8x22b"),
        ("235B-A22B", "qwen3-235b-a22b"),
        ("671B-A37B", "deepseek-v3"),
        ("1558M", "gpt2-xl"),
        ("llama 70b", "llama-3.1-70b"),
        ("llama-3-70b", "llama-3.1-70b"),
        ("llama 8b", "llama-3.1-8b"),
        ("gemma 27b", "gemma-3-27b"),
    ],
)
def test_what_a_size_stands_for(said: str, meant: str) -> None:
    assert resolve_model(packaged(), said).id == meant


def test_every_default_of_the_catalogue_is_what_its_size_gives() -> None:
    catalog = packaged()
    for fact in catalog.models.values():
        if fact.supported:
            for size in fact.bare_sizes:
                assert resolve_model(catalog, size).id == fact.id, size


def test_30b_has_no_usual_meaning_and_is_asked_back() -> None:
    (error,) = refused("30B")
    assert error.pointer == "/model"
    assert {"opt-30b", "mpt-30b", "qwen3-vl-30b-a3b"} <= set(error.suggestions)


def test_a_size_whose_default_cannot_be_sized_gives_the_next_one_and_says_so() -> None:
    resolved = resolve_model(packaged(), "27B")
    assert resolved.id == "gemma-3-27b"
    assert [code for code, _ in resolved.warnings][:2] == ["default_not_supported", "bare_size"]


def test_a_size_no_model_has_is_derived_from_its_neighbours_and_counts_exactly() -> None:
    resolved = resolve_model(packaged(), "23B")
    assert resolved.parameters == resolved.total_parameters == 23_000_000_000
    assert count(resolved.architecture) == pytest.approx(23e9, rel=0.02)
    ((code, message),) = resolved.warnings
    assert code == "derived_shape"
    assert "codestral-22b and mistral-small-24b" in message
    assert resolved.source == "default"


def test_a_number_of_parameters_is_taken_exactly() -> None:
    resolved = resolve_model(packaged(), {"parameters": 70e9})
    assert resolved.total_parameters == 70_000_000_000
    assert (resolved.architecture.layers, resolved.architecture.hidden_size) == (80, 8192)
    assert resolved.source == "request"


@pytest.mark.parametrize("number", [0, -7e9, 10**5, 10**16, 1.5, "7B", True, float("nan"), float("inf"), 10**400])
def test_numbers_of_parameters_that_cannot_be(number: object) -> None:
    (error,) = refused({"parameters": number})
    assert error.pointer == "/model/parameters"


def test_a_model_whose_shape_is_not_supported_is_refused_with_the_reason() -> None:
    (error,) = refused("mamba-2.8b")
    assert "state-space" in error.detail
    assert '{"parameters": 2768345600}' in (error.allowed or "")
    (error,) = refused("Jamba v0.1 52B")
    assert "Mamba layers" in error.detail


@pytest.mark.parametrize(
    ("said", "suggestion"),
    [("lama-3.1-70b", "llama-3.1-70b"), ("llama-3.1-71b", "llama-3.1-70b"), ("mixtrl-8x7b", "mixtral-8x7b")],
)
def test_a_slip_of_the_finger_is_answered_with_the_nearest_names(said: str, suggestion: str) -> None:
    (error,) = refused(said)
    assert suggestion in error.suggestions


def test_a_spelling_of_two_models_is_asked_back() -> None:
    """Qwen-7B is the first generation, qwen 7B is what people write for the newest."""
    (error,) = refused("qwen 7b")
    assert set(error.suggestions) == {"qwen1-7b", "qwen2.5-7b"}
    assert resolve_model(packaged(), "Qwen-7B").id == "qwen1-7b"


@pytest.mark.parametrize(
    ("spec", "pointers"),
    [
        (None, ["/model"]),
        (7, ["/model"]),
        ("", ["/model"]),
        ([], ["/model"]),
        ({}, ["/model"]),
        ({"parameter": 7e9}, ["/model/parameter"]),
        ({"parameters": 7e9, "architecture": {}}, ["/model"]),
        ({"hf_config": 5}, ["/model/hf_config"]),
        ({"architecture": 5}, None),
    ],
)
def test_what_is_no_model_is_pointed_at(spec: object, pointers: list[str] | None) -> None:
    errors = [error.pointer for error in refused(spec)]
    assert errors == pointers if pointers else "/model/architecture" in errors


def test_a_vision_language_model_has_its_tower_as_one_group_of_the_published_size() -> None:
    resolved = resolve_model(packaged(), "gemma-3-12b")
    assert resolved.architecture.extra_parameters == (("vision tower", 421_290_864),)
    assert resolved.total_parameters == 12_187_325_040
    assert [code for code, _ in resolved.warnings] == ["vision_tower_counted"]


def test_doubtful_dropout_rates_are_said() -> None:
    assert "dropout_of_catalogue" in [code for code, _ in resolve_model(packaged(), "phi-2").warnings]
