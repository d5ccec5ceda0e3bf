"""Parameters of every supported model of the catalogue against figures that others counted.

`meta_parameters` were counted by building each model with transformers 5.24 on the meta device; most equal what the
model's hub page or keras-hub says (docs/catalogue.md tells which).
"""

from __future__ import annotations

import pytest

from service.catalog.facts import ModelFact, packaged
from service.catalog.hf_config import read
from service.catalog.resolve import resolve_model
from service.engine.parameters import active_count, count

SUPPORTED = [pytest.param(fact, id=fact.id) for fact in packaged().models.values() if fact.supported]
ENCODER_DECODERS = ("t5", "mt5")


def counted_by_others(fact: ModelFact) -> int | None:
    """The text model's own figure; T5's with its head untied where its config unties it."""
    if fact.model_type in ENCODER_DECODERS:
        return fact.published_parameters
    return fact.text_parameters or fact.parameters


@pytest.mark.parametrize("fact", SUPPORTED)
def test_counts_are_exact(fact: ModelFact) -> None:
    assert count(read(fact.config).architecture) == counted_by_others(fact)


@pytest.mark.parametrize("fact", [param for param in SUPPORTED if param.values[0].active_parameters])  # type: ignore[attr-defined]
def test_active_counts_of_mixtures_are_exact(fact: ModelFact) -> None:
    assert active_count(read(fact.config).architecture) == fact.active_parameters


@pytest.mark.parametrize("fact", [param for param in SUPPORTED if param.values[0].vision_parameters])  # type: ignore[attr-defined]
def test_text_model_and_vision_tower_add_up_to_the_whole_model(fact: ModelFact) -> None:
    assert resolve_model(packaged(), fact.id).total_parameters == fact.parameters


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-xl", 1_557_611_200),
        ("llama-2-7b", 6_738_415_616),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("mistral-7b", 7_241_732_096),
        ("mixtral-8x7b", 46_702_792_704),
        ("qwen2.5-7b", 7_615_616_512),
        ("gemma-2-9b", 9_241_705_984),
        ("falcon-7b", 6_921_720_704),
        ("gpt-neox-20b", 20_554_567_680),
        ("phi-2", 2_779_683_840),
        ("deepseek-v3", 671_026_404_352),
        ("gpt-oss-120b", 116_829_156_672),
        ("bert-base-uncased", 109_482_240),
        ("t5-small", 60_506_624),
        ("bloom-176b", 176_247_271_424),
    ],
)
def test_well_known_counts(name: str, parameters: int) -> None:
    """The same numbers stand on the models' own pages."""
    assert resolve_model(packaged(), name).total_parameters == parameters


def test_flan_t5_unties_its_head_and_t5_does_not() -> None:
    """transformers 5 ties both whatever the config says; the published counts follow the config."""
    models = packaged().models
    assert count(read(models["t5-base"].config).architecture) == models["t5-base"].parameters
    flan = models["flan-t5-base"]
    assert count(read(flan.config).architecture) == (flan.parameters or 0) + 32128 * 768
