"""A checkpointed layer is run again as the kind of layer it was, not as the kind that came last."""

from __future__ import annotations

import pytest

from service.catalog.facts import packaged
from service.requests.schemas import load_request
from service.sizings.answer import answer

MIXED = ("command-r7b", "ernie-4.5-300b-a47b", "exaone-4.0-32b", "llama-4-scout")


@pytest.mark.parametrize("model", MIXED)
def test_adapters_of_a_model_with_several_kinds_of_layer_are_sized_under_recomputation(model: str) -> None:
    asked = {"model": model, "gpus": 8, "dp": 8, "stack": "huggingface", "recompute": "full", "method": "lora"}
    kept = answer(load_request(asked | {"recompute": "none"}), packaged())["per_gpu"]["stages"][0]["saved_bytes"]
    recomputed = answer(load_request(asked), packaged())["per_gpu"]["stages"][0]["saved_bytes"]
    assert 0 < recomputed < kept
