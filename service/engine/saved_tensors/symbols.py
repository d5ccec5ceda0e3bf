"""The symbols of the programs with their sizes on one rank."""

from __future__ import annotations

from service.engine.architecture import LayerKind
from service.engine.elementwise import Int, ceil_div, maximum
from service.engine.ledger import Dim
from service.engine.saved_tensors.scope import Scope


def dimensions(scope: Scope, kind: LayerKind) -> dict[str, Dim]:
    """Every symbol as a dimension of one rank, for layers of this kind."""
    a, run, layout = scope.architecture, scope.run, scope.layout
    tp = ("tp",)
    local_kv = maximum(ceil_div(kind.kv_heads or a.kv_heads, layout.tp), 1)
    group = maximum(ceil_div(a.heads, layout.tp) // local_kv, 1)
    tokens = scope.queries.size
    head = kind.head_dim or a.head_dim
    found: dict[str, tuple[Int, tuple[str, ...]]] = {
        "b": (run.micro_batch, ()),
        "s": (tokens, ("cp",)),
        "t": (run.sequence_length, ()),
        "s1": (tokens + 1, ("cp",)),
        "s32": (ceil_div(tokens, 32) * 32, ("cp",)),
        "h": (a.hidden_size, ()),
        "kv": (local_kv, tp),
        "g": (group, ()),
        "d": (head, ()),
        "d2": (head // 2, ()),
        "f": (ceil_div(kind.ffn_size or 0, layout.tp), tp),
        "V": (scope.vocab.size, tp),
    }
    return {symbol: Dim(symbol, size, sharded) for symbol, (size, sharded) in found.items()}
