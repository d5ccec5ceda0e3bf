"""Rotary positions as the families write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import parts
from service.engine.saved_tensors.code.model import Around, Model

Pair = tuple[Tensor, Tensor]


def apply(m: Model, query: Tensor, key: Tensor, at: Around) -> Pair:
    """Rotate queries and keys, or the first part of each head."""
    assert at.cos is not None and at.sin is not None
    return STYLES.get(m.architecture.code, plain)(m, query, key, at.cos, at.sin)


def plain(m: Model, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """Llama: in the dtype of the heads; partly rotated heads are cut and joined."""
    return _one(m, query, cos, sin, "query"), _one(m, key, cos, sin, "key")


def _one(m: Model, x: Tensor, cos: Tensor, sin: Tensor, name: str) -> Tensor:
    if m.architecture.rotary_fraction < 1:
        turned, rest = m.tape.extent("r"), m.tape.extent("p")
        return parts.rotate_part(x, cos, sin, f"rotated {name}", turned=turned, rest=rest)
    return parts.rotate(x, cos, sin, f"rotated {name}")


def wide(m: Model, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """Cohere: heads are cast to fp32 first and back afterwards."""
    dtype = query.dtype
    query, key = ops.to(query, "fp32", "query in fp32"), ops.to(key, "fp32", "key in fp32")
    query, key = plain(m, query, key, cos, sin)
    return ops.to(query, dtype, "rotated query"), ops.to(key, dtype, "rotated key")


def mixed(m: Model, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """OLMo: the tables are fp32, so the products are; the sum is cast back."""
    dtype = query.dtype
    query, key = plain(m, query, key, cos, sin)
    return ops.to(query, dtype, "rotated query"), ops.to(key, dtype, "rotated key")


def pairs(m: Model, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """GLM: each layer writes the tables out again with every entry twice in a row."""
    cos, sin = (ops.like(table, f"interleaved {name}") for name, table in (("cos", cos), ("sin", sin)))
    return plain(m, query, key, cos, sin)


def wide_pairs(m: Model, query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> Pair:
    """ERNIE 4.5: as GLM, with heads and rotated halves cast to fp32."""
    cos, sin = (ops.like(table, f"interleaved {name}") for name, table in (("cos", cos), ("sin", sin)))
    dtype = query.dtype
    made = []
    for x, name in ((query, "query"), (key, "key")):
        left = ops.mul(ops.to(x, "fp32", f"{name} in fp32"), cos)
        right = ops.mul(ops.to(parts.rotate_half(x), "fp32", f"turned {name} in fp32"), sin)
        made.append(ops.to(ops.add(left, right, f"rotated {name} in fp32"), dtype, f"rotated {name}"))
        del left, right
    return made[0], made[1]


STYLES: Mapping[str, Callable[[Model, Tensor, Tensor, Tensor, Tensor], Pair]] = {
    "cohere": wide,
    "cohere2": wide,
    "olmo": mixed,
    "olmo2": mixed,
    "olmo3": mixed,
    "glm": pairs,
    "glm4": pairs,
    "ernie4_5": wide_pairs,
    "ernie4_5_moe": wide_pairs,
}

#: families whose tables stay in fp32
WIDE_TABLES = frozenset({"olmo", "olmo2", "olmo3", "ernie4_5", "ernie4_5_moe"})


def positions(m: Model) -> tuple[Tensor | None, Tensor | None]:
    """cos and sin where the model has rotary positions."""
    if m.architecture.position != "rope":
        return None, None
    symbol = "r" if m.architecture.rotary_fraction < 1 else "d"
    return parts.positions(m, symbol, dtype="fp32" if m.architecture.code in WIDE_TABLES else None)
