"""Which program stands for which modelling code (hf model_type)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from service.engine.architecture import Architecture
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import llama
from service.engine.saved_tensors.code.model import Model


class Program(NamedTuple):
    """Forward up to the loss, and into how many segments it cuts the model."""

    run: Callable[[Model], Tensor]
    segments: Callable[[Model], int]


def front_layers_tail(model: Model) -> int:
    """One segment before the layers, one a kind of layer, one after."""
    return len(model.kinds) + 2


LLAMA = Program(llama.causal_lm, front_layers_tail)

PROGRAMS: Mapping[str, Program] = {}


def program(architecture: Architecture) -> Program:
    """The program of a model; Llama's for what has none of its own."""
    return PROGRAMS.get(architecture.code, LLAMA)
