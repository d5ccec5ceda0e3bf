"""Which function reads which model_type."""

from __future__ import annotations

from collections.abc import Callable

from service.catalog.hf_config.reader import ConfigReader
from service.engine.architecture import Architecture

ReadFamily = Callable[[ConfigReader], Architecture]

FAMILIES: dict[str, ReadFamily] = {}


def reads(*model_types: str) -> Callable[[ReadFamily], ReadFamily]:
    """Register a function as the reader of these model types."""

    def register(function: ReadFamily) -> ReadFamily:
        for model_type in model_types:
            FAMILIES[model_type] = function
        return function

    return register
