"""Routed experts of transformers 5.24: a router per family, experts as grouped products (integrations/moe.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import parts
from service.engine.saved_tensors.code.model import Model


def block(m: Model, x: Tensor) -> Tensor:
    """Router, experts, and the shared experts where the model has them."""
    moe = m.architecture.moe
    assert moe is not None
    with m.tape.part("moe", region="moe"):
        flat = ops.reshape(x, (m.tape.extent("b", "s"), x.shape[-1]))
        weights, places = ROUTERS.get(m.architecture.code, softmax_router)(m, flat)
        out = ops.reshape(experts(m, flat, weights, places), x.shape)
        if moe.shared_width:
            out = ops.add(out, shared_experts(m, x), "routed and shared experts")
        return out


def wide_logits(m: Model, x: Tensor) -> Tensor:
    """Router logits in fp32, from an fp32 copy of the input (DeepSeek and its descendants)."""
    wide = ops.to(x, "fp32", "router input in fp32")
    weight = m.vector("router.weight", m.tape.extent("E"), x.shape[-1], dtype="fp32")
    return ops.product(wide, weight, None, "router logits")


def sigmoid_router(m: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """DeepSeek-V3: sigmoid scores; a bias that only chooses; weights of the chosen, scaled to sum to 1."""
    t = m.tape
    with t.part("router", region="moe"):
        logits = wide_logits(m, x)
        scores = ops.sigmoid(logits, "router scores")
        places = t.new((scores.shape[0], t.extent("k")), "int64", "chosen experts")
        values = ops.gather(scores, places, "scores of the chosen")
        whole = ops.shift(ops.total(values, "sum of the chosen scores"))
        values = ops.divide_in_place(values, whole)
        return ops.scale(values, "scaled router weights"), places


def late_softmax_router(m: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """Granite: the best k logits in fp32, softmax over those."""
    t = m.tape
    with t.part("router", region="moe"):
        logits = ops.to(m.linear(x, "router", t.extent("E"), label="router logits"), "fp32", "router logits in fp32")
        values, places = ops.top_k(logits, t.extent("k"), "chosen router logits")
        return ops.to(ops.softmax(values, "router weights"), x.dtype, "router weights"), places


def softmax_router(m: Model, x: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities over all experts in fp32, the best k of them, scaled to sum to 1 (Mixtral, Qwen)."""
    t = m.tape
    cast = m.architecture.code != "mixtral"
    with t.part("router", region="moe"):
        logits = m.linear(x, "router", t.extent("E"), label="router logits")
        chances = ops.softmax(logits, "router probabilities", dtype="fp32")
        values, places = ops.top_k(chances, t.extent("k"), "chosen router probabilities")
        if m.architecture.moe is not None and m.architecture.moe.normalised_weights:
            values = ops.divide_in_place(values, ops.total(values, "sum of the chosen probabilities"))
        return ops.to(values, logits.dtype) if cast else values, places


Gate = Callable[[Model, Tensor], Tensor]


def experts(
    m: Model, x: Tensor, weights: Tensor, places: Tensor, *, bias: bool = False, gate: Gate | None = None
) -> Tensor:  # fmt: skip
    """Rows sorted by expert, two grouped products, weighted and brought back into order."""
    t = m.tape
    rows = t.extent("b", "s", "k")
    sample_weights = ops.reshape(weights, (rows,))
    ids = t.new((rows,), "int64", "sorted expert ids")
    order = t.new((rows,), "int64", "order of the rows by expert")
    token = t.new((rows,), "int64", "token of each row")
    chosen = ops.rows_at(x, token, "rows sorted by expert")
    del token
    sorted_weights = ops.rows_at(sample_weights, order, "router weights sorted by expert")
    counts = t.new(t.shape("E"), "int32", "rows of each expert")
    offsets = t.new(t.shape("E"), "int32", "where each expert's rows end")
    out = _expert_mlp(m, chosen, offsets, ids if bias else None, gate or _silu_gate)
    weighted = ops.mul(out, ops.reshape(sorted_weights, (rows, ())), "weighted expert outputs")
    back = t.new((rows,), "int64", "where each row came from")
    weighted = ops.rows_at(weighted, back, "expert outputs in the tokens' order")
    del counts, ids, order
    final = ops.sum_of_copies(
        ops.reshape(weighted, (t.extent("b", "s"), t.extent("k"), x.shape[-1])), "sum over experts"
    )
    return ops.to(final, x.dtype)


def _silu_gate(m: Model, both: Tensor) -> Tensor:
    """act(gate) · up of joined columns."""
    width = m.tape.extent("m")
    gate, up = ops.split(both, (width, width))
    inner = parts.activated(m, gate, parts.activation_name(m))
    return ops.mul(inner, up, "input of the experts' down projection")


def _expert_mlp(m: Model, chosen: Tensor, offsets: Tensor, ids: Tensor | None, gate: Gate) -> Tensor:
    t = m.tape
    width, hidden = t.extent("m"), chosen.shape[-1]
    with t.part("moe", region="moe"):
        up = m.vector("experts.gate_up_proj", t.extent("E"), t.extent("2", "m"), hidden)
        both = ops.grouped(chosen, up, offsets, t.extent("2", "m"), "gate and up of the experts")
        both = _with_bias(m, both, ids, "gate_up_proj_bias")
        with t.part("moe", region="moe_act"):
            inner = gate(m, both)
        del both
        down = m.vector("experts.down_proj", t.extent("E"), hidden, width)
        out = ops.grouped(inner, down, offsets, hidden, "expert outputs")
        return _with_bias(m, out, ids, "down_proj_bias")


def _with_bias(m: Model, rows: Tensor, ids: Tensor | None, name: str) -> Tensor:
    """Each row plus the bias of its expert, in place."""
    if ids is None:
        return rows
    biases = m.vector(f"experts.{name}", m.tape.extent("E"), rows.shape[-1])
    return ops.add_in_place(rows, ops.rows_at(biases, ids, "bias of each row's expert"))


def shared_experts(m: Model, x: Tensor) -> Tensor:
    """The experts that see every token: one dense MLP, with a gate of its own in Qwen."""
    with m.tape.part("shared experts", region="shared_experts"):
        out = parts.gated_mlp(m, x, "shared_experts", "ms")
        if m.architecture.moe is not None and m.architecture.moe.shared_gate:
            gate = ops.sigmoid(m.linear(x, "shared_expert_gate", (), label="shared gate"), "sigmoid of the shared gate")
            out = ops.mul(gate, out, "gated shared experts")
        return out


Router = Callable[[Model, Tensor], tuple[Tensor, Tensor]]

#: families whose router is not a softmax over all experts
ROUTERS: Mapping[str, Router] = {
    "deepseek_v3": sigmoid_router,
    "deepseek_v32": sigmoid_router,
    "glm4_moe": sigmoid_router,
    "glm4_moe_lite": sigmoid_router,
    "glm_moe_dsa": sigmoid_router,
    "minimax_m2": sigmoid_router,
    "granitemoe": late_softmax_router,
}
