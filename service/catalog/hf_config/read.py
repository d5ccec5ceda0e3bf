"""The door of this package: which family reads a config, text models inside others, and every error at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from service.catalog.bounds import MOST_PARAMETERS, shown
from service.catalog.hf_config import encoders, gemma, gpt, latent, llama_like, mixtures
from service.catalog.hf_config.defaults import class_defaults
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import FAMILIES
from service.engine.architecture import Architecture
from service.engine.errors import FieldError, InvalidInput, nearest
from service.engine.parameters import count

#: modules that register families by being imported
MODULES = (encoders, gemma, gpt, latent, llama_like, mixtures)

#: models with a text model inside → its model_type
TEXT_MODELS: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "llama4": "llama4_text",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
}

#: names of their own for the code of another family
SAME_CODE: Mapping[str, str] = {"kimi_k2": "deepseek_v3", "mimo": "qwen2", "minimax_m3": "minimax_m3_vl"}

#: families that are known and not describable as a transformer of alike layers
UNSUPPORTED: Mapping[str, str] = {
    "clip": "two towers and a contrastive loss",
    "deepseek_v4": "compressed attention, hash layers and hyper-connections",
    "dinov2": "a vision encoder without tokens",
    "jamba": "Mamba layers between attention layers",
    "kimi_k3": "linear-attention layers and latent experts",
    "kimi_linear": "linear-attention layers between attention layers",
    "mamba": "a state-space model without attention",
    "mimo_v2_flash": "two attention shapes with different value widths",
    "minimax": "lightning-attention layers between attention layers",
    "nemotron-nas": "every layer has its own shape",
    "nemotron_h": "Mamba layers between attention layers",
    "qwen3_5": "linear-attention layers between attention layers",
    "qwen3_5_moe": "linear-attention layers between attention layers",
    "qwen3_next": "linear-attention layers between attention layers",
    "siglip": "two towers and a contrastive loss",
    "step3p7": "its layers are not described yet",
    "vit": "a vision encoder without tokens",
    "wav2vec2": "a speech encoder with convolutions",
    "whisper": "a speech encoder with convolutions",
}


class Reading(NamedTuple):
    """What a config says: the architecture, and warnings as (code, message)."""

    architecture: Architecture
    warnings: tuple[tuple[str, str], ...]


def supported_model_types() -> tuple[str, ...]:
    return tuple(sorted({*FAMILIES, *TEXT_MODELS, *SAME_CODE}))


def read(config: Any, pointer: str = "/model/hf_config") -> Reading:
    """Architecture of a config.json (or of one row of the catalogue).

    Raises InvalidInput with a pointer to every key that is missing, contradictory or out of bounds, and for a
    model_type that is unknown or whose layers are not all attention and MLP.
    """
    if not isinstance(config, Mapping):
        raise InvalidInput([FieldError(pointer, "hf_config is not an object", shown(config), "a config.json")])
    model_type = _model_type(config, pointer)
    notes: list[tuple[str, str]] = []
    if model_type in TEXT_MODELS or model_type not in FAMILIES:
        config, model_type, pointer = _text_model(config, model_type, pointer, notes)
    elif isinstance(config.get("text_config"), Mapping):
        notes.append(("text_config_ignored", f"a {model_type} model has no text_config: it was passed over"))
    reader = ConfigReader(config, model_type, class_defaults().get(model_type, {}), pointer)
    reader.check_spellings()
    architecture = FAMILIES[model_type](reader)
    reader.raise_errors()
    _bounded(architecture, pointer)
    if reader.defaulted:
        taken = ", ".join(f"{key} {shown(value)}" for key, value in sorted(reader.defaulted.items()))
        notes.append(("hf_config_defaults", f"not in the config, so taken from the {model_type} class: {taken}"))
    return Reading(architecture, (*notes, *reader.warnings))


def _model_type(config: Mapping[str, Any], pointer: str) -> str:
    said = config.get("model_type")
    allowed = "one of " + ", ".join(supported_model_types())
    if said is None:
        raise InvalidInput([FieldError(f"{pointer}/model_type", "model_type is missing", None, allowed)])
    if not isinstance(said, str):
        raise InvalidInput([FieldError(f"{pointer}/model_type", "model_type is not a text", shown(said), allowed)])
    return SAME_CODE.get(said, said)


def _text_model(
    config: Mapping[str, Any], model_type: str, pointer: str, notes: list[tuple[str, str]]
) -> tuple[Mapping[str, Any], str, str]:
    """The text model's own config, type and pointer. Old configs keep its keys at the top."""
    inner = config.get("text_config")
    if inner is not None and not isinstance(inner, Mapping):
        raise InvalidInput(
            [FieldError(f"{pointer}/text_config", "text_config is not an object", shown(inner), "an object")]
        )
    text_type = TEXT_MODELS.get(model_type)
    if text_type is None:
        said = inner.get("model_type") if inner else None
        said = SAME_CODE.get(said, said) if isinstance(said, str) else None
        if inner is None or said not in FAMILIES:
            raise InvalidInput([_unknown(model_type, pointer)])
        notes.append(("text_model_only", f"{model_type} is not known here: its text model ({said}) is sized alone"))
        return inner, said, f"{pointer}/text_config"
    if any(key in config for key in ("vision_config", "audio_config")):
        notes.append(("text_model_only", "the text model is sized; vision and audio towers are not counted"))
    if inner is None:
        return {**config, **_tying(config, {}, model_type)}, text_type, pointer
    return {**_tying(config, inner, model_type), **_without_tying(inner)}, text_type, f"{pointer}/text_config"


def _tying(outer: Mapping[str, Any], inner: Mapping[str, Any], model_type: str) -> dict[str, Any]:
    """Who says whether the head is tied: the outer config where there is one, save for Llama 4 and Qwen2.5-VL."""
    said = outer.get("tie_word_embeddings")
    if model_type == "llama4" or (model_type in ("qwen2_5_vl", "minimax_m3_vl") and not said):
        said = inner.get("tie_word_embeddings", said)
    elif said is None:
        said = class_defaults().get(model_type, {}).get("tie_word_embeddings")
    return {} if said is None else {"tie_word_embeddings": said}


def _without_tying(inner: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inner.items() if key != "tie_word_embeddings"}


def _unknown(model_type: str, pointer: str) -> FieldError:
    given = model_type[:60]
    known = supported_model_types()
    if model_type in UNSUPPORTED:
        detail = f"{given} models cannot be sized: {UNSUPPORTED[model_type]}"
    else:
        detail = f"model_type {given} is not known"
    return FieldError(f"{pointer}/model_type", detail, given, "one of " + ", ".join(known), nearest(model_type, known))


def _bounded(architecture: Architecture, pointer: str) -> None:
    total = count(architecture)
    if total > MOST_PARAMETERS:
        detail = f"these sizes make {total:.3e} parameters"
        raise InvalidInput([FieldError(pointer, detail, None, f"at most {MOST_PARAMETERS:.0e} parameters")])
