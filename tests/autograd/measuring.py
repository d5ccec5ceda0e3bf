"""Which storages autograd holds after forward, by torch's own hooks.

Runs in an environment of its own (requirements.txt beside this file) and prints one JSON object a line: the model, the
dtype, whether layers are checkpointed, and [shape, dtype, bytes] of every storage that was saved, parameters, buffers
and inputs left out.
"""

from __future__ import annotations

import json
import sys
import weakref
from typing import Any

import torch
from models import FP32_ONLY, MODELS
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

BATCH, SEQUENCE = 2, 64
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
NAMES = {
    torch.float32: "fp32", torch.bfloat16: "bf16", torch.int64: "int64", torch.int32: "int32", torch.bool: "bool",
    torch.complex64: "complex64",
}  # fmt: skip


def model_of(config: dict[str, Any], dtype: str) -> torch.nn.Module:
    """A model with random weights, in training mode, attention written out in Python."""
    told = dict(config)
    made = CONFIG_MAPPING[told.pop("model_type")](**told)
    torch.manual_seed(0)
    grouped = {"experts_implementation": "grouped_mm"} if hasattr(made, "num_experts_per_tok") else {}
    model = AutoModelForCausalLM.from_config(made, dtype=DTYPES[dtype], attn_implementation="eager", **grouped)
    return model.train()


class Held:
    """A saved tensor in the hands of a graph node; it goes when the node goes."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def saved_storages(model: torch.nn.Module, vocabulary: int) -> list[tuple[list[int], str, int]]:
    """[shape, dtype, bytes] of every storage that nodes of the loss's graph hold at the end of forward.

    Branches that lead to no loss (a router's choice of groups) save as well, but go with their Python variables.
    """
    ids, labels = (torch.randint(0, vocabulary, (BATCH, SEQUENCE)) for _ in range(2))
    outside = (*model.parameters(), *model.buffers(), ids, labels)
    known = {tensor.untyped_storage().data_ptr() for tensor in outside}
    saved: list[weakref.ref[Held]] = []

    def pack(tensor: torch.Tensor) -> Held:
        held = Held(tensor)
        saved.append(weakref.ref(held))
        return held

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
        loss = model(input_ids=ids, labels=labels, use_cache=False).loss
    found: dict[int, tuple[list[int], str, int]] = {}
    for held in filter(None, (reference() for reference in saved)):
        storage = held.tensor.untyped_storage()
        if storage.data_ptr() not in known and storage.nbytes():
            shape, dtype = list(held.tensor.shape), NAMES[held.tensor.dtype]
            found.setdefault(storage.data_ptr(), (shape, dtype, storage.nbytes()))
    del loss
    return list(found.values())


def main() -> None:
    """Measure every model in every dtype, plain and checkpointed."""
    for name, config in MODELS.items():
        for dtype in ("fp32",) if name in FP32_ONLY else DTYPES:
            for checkpointed in (False, True):
                model = model_of(config, dtype)
                if checkpointed:
                    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
                rows = saved_storages(model, config["vocab_size"])
                told = {"model": name, "dtype": dtype, "checkpointed": checkpointed, "rows": rows}
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
