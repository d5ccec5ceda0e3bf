"""The door of the catalogue: what a request calls a model or a GPU → what the engine computes with.

No SQLAlchemy and no Flask: the terminal answers from the packaged facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from service.catalog.architecture_object import read_architecture
from service.catalog.bounds import LEAST_PARAMETERS, MOST_PARAMETERS, shown
from service.catalog.derived import derived_shape
from service.catalog.facts import Catalog, ModelFact
from service.catalog.gpus import ResolvedGpu, resolve_gpu, resolve_gpus
from service.catalog.hf_config import read as read_hf_config
from service.catalog.hf_config.read import UNSUPPORTED
from service.catalog.members import whole
from service.catalog.names import NameIndex, squashed, without_packaging
from service.catalog.sizes import BareSize, bare_size, of_family_and_size
from service.engine.architecture import Architecture
from service.engine.errors import FieldError, InvalidInput, nearest
from service.engine.parameters import count

__all__ = ["ResolvedGpu", "ResolvedModel", "resolve_gpu", "resolve_gpus", "resolve_model"]

OBJECT_KEYS = ("parameters", "hf_config", "architecture")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedModel:
    """A model to size.

    `parameters` is a number that the request fixed although the architecture counts another (a size that no model has);
    None means "as the architecture counts". `source` says who chose: the request by name or object, or a default for a
    bare size. `warnings` are (code, message).
    """

    id: str
    name: str
    architecture: Architecture
    parameters: int | None = None
    alternatives: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    source: Literal["request", "default"] = "request"

    @property
    def total_parameters(self) -> int:
        return count(self.architecture) if self.parameters is None else self.parameters


def resolve_model(catalog: Catalog, spec: Any, pointer: str = "/model") -> ResolvedModel:
    """A model by name, bare size, number of parameters, config.json or architecture.

    Raises InvalidInput: unknown or ambiguous names (with the nearest ones), shapes that no transformer formula
    describes, and every problem of an object, each with a pointer.
    """
    if isinstance(spec, Mapping):
        return _from_object(catalog, spec, pointer)
    if not isinstance(spec, str):
        allowed = "a name like llama-3.1-70b, a size like 70B, or an object"
        raise InvalidInput([FieldError(pointer, "model is not a name", shown(spec), allowed)])
    return _from_text(catalog, spec, pointer)


def _from_object(catalog: Catalog, spec: Mapping[str, Any], pointer: str) -> ResolvedModel:
    errors = [
        FieldError(f"{pointer}/{key}", f"{str(key)[:60]} is not known", str(key)[:60], ", ".join(OBJECT_KEYS), near)
        for key in spec
        if key not in OBJECT_KEYS
        for near in (nearest(str(key), OBJECT_KEYS),)
    ]
    said = [key for key in OBJECT_KEYS if key in spec]
    if not errors and len(said) != 1:
        detail = "the model is described in several ways" if said else "the model object is empty"
        errors.append(FieldError(pointer, detail, ", ".join(said) or None, f"one of {', '.join(OBJECT_KEYS)}"))
    if errors:
        raise InvalidInput(errors)
    key, value = said[0], spec[said[0]]
    if key == "parameters":
        return _of_parameters(catalog, value, f"{pointer}/parameters")
    if key == "hf_config":
        architecture, warnings = read_hf_config(value, f"{pointer}/hf_config")
        return ResolvedModel(
            id="hf-config",
            name=f"{architecture.code} (config.json)",
            architecture=architecture,
            warnings=warnings,
        )
    architecture, warnings = read_architecture(value, f"{pointer}/architecture")
    return ResolvedModel(id="architecture", name="architecture as given", architecture=architecture, warnings=warnings)


def _of_parameters(catalog: Catalog, value: Any, pointer: str) -> ResolvedModel:
    number = whole(value)
    if number is None or not LEAST_PARAMETERS <= number <= MOST_PARAMETERS:
        allowed = f"a whole number from {LEAST_PARAMETERS:,} to {MOST_PARAMETERS:,}"
        raise InvalidInput([FieldError(pointer, "parameters is not usable", shown(value), allowed)])
    return _derived(catalog, number, f"{number:,} parameters were asked for", "request")


def _derived(catalog: Catalog, number: int, why: str, source: Literal["request", "default"]) -> ResolvedModel:
    architecture, neighbours = derived_shape(catalog, number)
    message = (
        f"{why}: the shape ({architecture.layers} layers, hidden {architecture.hidden_size}, MLP "
        f"{architecture.ffn_size}) is derived from {' and '.join(neighbours)} and counts as exactly {number:,}"
    )
    return ResolvedModel(
        id="derived",
        name=f"{_short_size(number)} dense (derived shape)",
        architecture=architecture,
        parameters=number,
        alternatives=neighbours,
        warnings=(("derived_shape", message),),
        source=source,
    )


def _from_text(catalog: Catalog, text: str, pointer: str) -> ResolvedModel:
    size = bare_size(catalog, text)
    if size is not None:
        return _of_size(catalog, text, size, pointer)
    for reading in (text, *without_packaging(text)):
        ids = _index(catalog).find(reading)
        if len(ids) == 1:
            return of_fact(catalog.models[ids[0]], pointer)
        if ids:
            raise InvalidInput([_ambiguous(text, ids, pointer)])
    for reading in without_packaging(text):
        fact, others = of_family_and_size(catalog, reading)
        if fact is not None:
            return _taken(text, fact, tuple(other.id for other in others), pointer)
    raise InvalidInput([_unknown(catalog, text, pointer)])


def _of_size(catalog: Catalog, text: str, size: BareSize, pointer: str) -> ResolvedModel:
    others = tuple(fact.id for fact in size.others)
    taken = size.taken
    if taken is not None and not taken.supported and size.others:
        note = f"{taken.name} is the usual {text} but {_why_unsupported(taken)}"
        first, *rest = size.others
        return _taken(text, first, tuple(fact.id for fact in rest), pointer, (("default_not_supported", note),))
    if taken is not None:
        return _taken(text, taken, others, pointer)
    if others:
        raise InvalidInput([_ambiguous(text, others, pointer)])
    if not LEAST_PARAMETERS <= size.parameters <= MOST_PARAMETERS:
        allowed = f"a size from {_short_size(LEAST_PARAMETERS)} to {_short_size(MOST_PARAMETERS)}"
        raise InvalidInput([FieldError(pointer, f"{text[:60]} is not a usable size", text[:60], allowed)])
    return _derived(catalog, size.parameters, f"no model of the catalogue has {text}", "default")


def _taken(
    text: str, fact: ModelFact, others: tuple[str, ...], pointer: str, warnings: tuple[tuple[str, str], ...] = ()
) -> ResolvedModel:
    """A model that a size or a family stands for, said aloud."""
    resolved = of_fact(fact, pointer)
    also = f"; other models of that size: {', '.join(others)}" if others else ""
    note = ("bare_size", f"{text} was taken as {fact.name} ({fact.id}){also}")
    return replace(resolved, alternatives=others, warnings=(*warnings, note, *resolved.warnings), source="default")


def of_fact(fact: ModelFact, pointer: str = "/model") -> ResolvedModel:
    """A row of the catalogue, read as any other config.json; a vision tower is one group of the row's size."""
    if not fact.supported:
        allowed = "a model whose layers are all attention and MLP"
        if fact.total:
            allowed += f', or {{"parameters": {fact.total}}} for a dense model of its size'
        raise InvalidInput([FieldError(pointer, f"{fact.name} {_why_unsupported(fact)}", fact.id, allowed)])
    return ResolvedModel(id=fact.id, name=fact.name, architecture=_architecture_of(fact), warnings=tuple(_notes(fact)))


@lru_cache(maxsize=512)
def _architecture_of(fact: ModelFact) -> Architecture:
    architecture = read_hf_config(fact.config).architecture
    if fact.vision_parameters:
        return replace(architecture, extra_parameters=(("vision tower", fact.vision_parameters),))
    return architecture


def _notes(fact: ModelFact) -> Iterator[tuple[str, str]]:
    if fact.row.get("dropout_note"):
        yield "dropout_of_catalogue", f"dropout rates of {fact.name} are doubtful: {fact.row['dropout_note']}"
    if fact.vision_parameters:
        yield (
            "vision_tower_counted",
            f"{fact.name}: its vision tower ({fact.vision_parameters:,} parameters) is counted, activations are not",
        )


def _why_unsupported(fact: ModelFact) -> str:
    reason = UNSUPPORTED.get(fact.model_type or "") or fact.kind.replace("-", " ")
    return f"cannot be sized, its shape is not supported: {reason}"


def _ambiguous(text: str, ids: tuple[str, ...] | list[str], pointer: str) -> FieldError:
    detail = f"{text[:60]} could mean {len(ids)} models of the catalogue"
    return FieldError(pointer, detail, text[:60], "one of them by its id", tuple(ids))


def _unknown(catalog: Catalog, text: str, pointer: str) -> FieldError:
    given = text[:60]
    keys: dict[str, str] = {}
    for fact in catalog.models.values():
        for spelling in (fact.id, *fact.aliases):
            keys.setdefault(squashed(spelling.rsplit("/", 1)[-1]), fact.id)
    readings = (squashed(reading) for reading in without_packaging(text))
    close = (keys[key] for reading in dict.fromkeys(readings) for key in nearest(reading, keys, most=6))
    allowed = "a model of /api/v1/models, a size like 70B, or an object with architecture or hf_config"
    detail = f"{given} is not a model of the catalogue" if given.strip() else "the model has no name"
    return FieldError(pointer, detail, given, allowed, tuple(dict.fromkeys(close))[:3])


@lru_cache(maxsize=4)
def _index(catalog: Catalog) -> NameIndex:
    return NameIndex(
        {
            fact.id: (
                fact.name,
                *fact.aliases,
                *fact.repos,
                *(name.rsplit("/", 1)[-1] for name in (*fact.aliases, *fact.repos) if name.count("/") == 1),
            )
            for fact in catalog.models.values()
        }
    )


def _short_size(parameters: int) -> str:
    for unit, name in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if parameters >= unit:
            return f"{parameters / unit:.4g}{name}"
    return str(parameters)
