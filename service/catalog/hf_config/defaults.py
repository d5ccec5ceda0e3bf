"""Class defaults of transformers 5.24, one table a model_type, for the keys that a family's reader asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any


@lru_cache(maxsize=1)
def class_defaults() -> Mapping[str, Mapping[str, Any]]:
    """model_type → key → default. A key with null is known to the class, which derives it."""
    text = resources.files("service.catalog").joinpath("data", "hf_defaults.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)["model_types"]
    return tables
