"""The names of a request, model and GPU, resolved together so that every wrong one is told at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from service.catalog.facts import Catalog
from service.catalog.resolve import ResolvedGpu, ResolvedModel, resolve_gpus, resolve_model
from service.engine.errors import FieldError, InvalidInput
from service.requests.request import SizingRequest
from service.requests.schemas import load_request
from service.sizings.inputs import DEFAULT_GPU

Resolved = TypeVar("Resolved")


def read_request(mapping: Mapping[str, Any], catalog: Catalog) -> SizingRequest:
    """A request from JSON. When it is refused, names that the catalogue does not know are refused with it."""
    try:
        return load_request(mapping)
    except InvalidInput as refused:
        if not isinstance(mapping, Mapping):
            raise
        told = {error.pointer.split("/")[1] for error in refused.errors if error.pointer.count("/")}
        errors = list(refused.errors)
        for key, resolve in (("model", resolve_model), ("gpu", resolve_gpus)):
            if mapping.get(key) is not None and key not in told:
                _collect(errors, lambda key=key, resolve=resolve: resolve(catalog, mapping[key]))  # type: ignore[misc]
        raise InvalidInput(errors) from None


def resolve_names(request: SizingRequest, catalog: Catalog) -> tuple[ResolvedModel, list[ResolvedGpu]]:
    """Model and GPUs of a request; raises InvalidInput with what is wrong with either."""
    errors: list[FieldError] = []
    model = _collect(errors, lambda: resolve_model(catalog, request.model))
    asked = request.gpu if request.gpu is not None else DEFAULT_GPU
    gpus = _collect(errors, lambda: resolve_gpus(catalog, asked))
    if model is None or gpus is None:
        raise InvalidInput(errors)
    return model, gpus


def _collect(errors: list[FieldError], resolve: Callable[[], Resolved]) -> Resolved | None:
    try:
        return resolve()
    except InvalidInput as refused:
        errors.extend(refused.errors)
        return None
