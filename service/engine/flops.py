"""Floating-point operations of training one token, from the same parameter groups that memory is counted from."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from service.engine.architecture import Architecture, LayerKind, layer_kinds
from service.engine.parameters import parameter_groups


class Work(NamedTuple):
    """One token in one forward, all layers together: FLOPs, and elements that element-wise operations touch.

    `dense` products of every token, `routed` those of the experts it is sent to, `attention` scores and values, `head`
    the vocabulary. `stream` elements are as wide as the residual stream, `local` ones are split by tensor parallelism.
    """

    dense: float
    routed: float
    attention: float
    head: float
    stream: float
    local: float


@lru_cache(maxsize=1024)
def work(architecture: Architecture, sequence_length: int, skips_masked: bool) -> Work:
    """Work of one token; `skips_masked` for a kernel that leaves out the half of the scores that causality hides."""
    groups, moe = parameter_groups(architecture), architecture.moe
    dense = routed = attention = stream = local = 0.0
    for kind in layer_kinds(architecture):
        layers = len(kind.positions)
        for group in groups.layers[kind]:
            if group.module == "moe" and moe is not None:
                routed += 2.0 * layers * group.count * moe.top_k / moe.experts
            elif group.kind == "matrix":
                dense += 2.0 * layers * group.count
        attention += layers * _attention(architecture, kind, sequence_length, skips_masked)
        stream += 4.0 * layers * architecture.hidden_size
        local += layers * _local_elements(architecture, kind)
    table = architecture.vocab_size * architecture.hidden_size if architecture.head in ("lm", "masked-lm") else 0
    return Work(dense, routed, attention, 2.0 * table, stream, local)


def _local_elements(architecture: Architecture, kind: LayerKind) -> float:
    moe = architecture.moe
    width = kind.ffn_size or 0
    if kind.mlp == "moe" and moe is not None:
        width = moe.top_k * moe.ffn_size + moe.shared_width
    return 2.0 * architecture.query_width + 2.0 * architecture.kv_width + 3.0 * width


def _attention(architecture: Architecture, kind: LayerKind, sequence_length: int, skips_masked: bool) -> float:
    """Scores and values of one token: 2 FLOPs per key it sees and element of query and value."""
    keys = float(sequence_length)
    if kind.attention == "sliding" and architecture.sliding_window:
        keys = float(min(sequence_length, architecture.sliding_window))
    elif skips_masked:
        keys /= 2
    return 2.0 * keys * (architecture.heads * kind.head_dim + architecture.value_width)


def model_flops(architecture: Architecture, sequence_length: int) -> float:
    """FLOPs of training one token by convention: forward and twice as much backward, 6 per active matrix parameter and
    12·L·A·s for attention (PaLM, arXiv:2204.02311, appendix B), whatever kernels skip or recompute."""
    found = work(architecture, sequence_length, False)
    return 3.0 * (found.dense + found.routed + found.head + found.attention)
