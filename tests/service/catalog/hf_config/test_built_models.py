"""Configs of every family against the same model built by transformers.

Each line of built_models.jsonl is a small (or mostly default) config with random switches and the number of parameters
that transformers 5.24.0 has after building it on the meta device (torch 2.13; tied once, vision towers left out).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.catalog.hf_config import read, supported_model_types
from service.engine.parameters import count

LINES = (Path(__file__).parent / "built_models.jsonl").read_text().splitlines()
BUILT = [json.loads(line) for line in LINES]
#: no class of transformers builds these; their one row of the catalogue is their check
NOT_BUILT = {"arctic", "grok1", "internlm3"}
#: read by the reader of another name that is built
SAME_READER = {
    "gemma3n",
    "kimi_k2",
    "mimo",
    "minimax_m3",
    "minimax_m3_vl",
    "qwen2_5_vl_text",
    "qwen3_vl_moe_text",
    "qwen3_vl_text",
}


@pytest.mark.parametrize(
    "built", [pytest.param(built, id=f"{built['config']['model_type']}-{n}") for n, built in enumerate(BUILT)]
)
def test_counts_what_transformers_builds(built: dict[str, Any]) -> None:
    assert count(read(built["config"]).architecture) == built["parameters"]


def test_every_family_was_built() -> None:
    built = {line["config"]["model_type"] for line in BUILT}
    assert set(supported_model_types()) - built == NOT_BUILT | SAME_READER
