"""The parameters of one transformer layer, tensor by tensor.

Names are the ones of Llama-like modelling code, whatever a family calls them itself; shapes are (out, in).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from service.engine.architecture import Architecture, LatentAttention, LayerKind, MixtureOfExperts, Shards

Kind = Literal["matrix", "vector", "embedding", "expert"]

#: the norms of a layer by how many there are, in the order in which forward meets them
NORM_NAMES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("input_layernorm",),
    2: ("input_layernorm", "post_attention_layernorm"),
    4: (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
}
BRANCH_NORM_NAMES = ("post_attention_layernorm", "post_feedforward_layernorm")


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters that are alike: `copies` tensors of `shape` in one layer (or once, outside the layers).

    `module` is what they belong to ("attention", "mlp", "moe", "router", "norm", "embedding", "head", …). `shards` is
    what may split them: "tp" over all tensor-parallel ranks, "tp_kv" over at most as many ranks as there are key-value
    heads, "tp_qkv" the queries of a joint projection like the first and its keys and values like the second, "ep"
    experts over expert-parallel ranks (and each over expert-tensor-parallel ones), "" nothing.
    """

    name: str
    module: str
    shape: tuple[int, ...]
    kind: Kind
    shards: Shards = ""
    copies: int = 1

    @property
    def count(self) -> int:
        return self.copies * prod(self.shape)


def layer_groups(architecture: Architecture, kind: LayerKind) -> tuple[ParameterGroup, ...]:
    """Every parameter of one layer of this kind, in the order in which forward meets them (norms first)."""
    mla = architecture.mla
    return (
        *_layer_norms(architecture, kind),
        *(_latent_attention(architecture, mla) if mla else _attention(architecture, kind)),
        *(_cross_attention(architecture) if architecture.encoder else ()),
        *_feed_forward(architecture, kind),
        *_extras(architecture, kind),
    )


def encoder_layer_groups(architecture: Architecture) -> tuple[ParameterGroup, ...]:
    """Every parameter of one layer of the encoder beside the decoder (T5, BART); () without one."""
    encoder = architecture.encoder
    if encoder is None:
        return ()
    width = encoder.heads * encoder.head_dim
    return (
        *(group for name in NORM_NAMES[2] for group in norm_groups(architecture, name)),
        *_projections(architecture, "self_attn", width, width, "tp"),
        *_mlp(architecture, "mlp", encoder.ffn_size),
    )


def norm_groups(architecture: Architecture, name: str, width: int | None = None) -> tuple[ParameterGroup, ...]:
    """Weight and bias of one of the model's own norms, as far as it has them."""
    shape = (architecture.hidden_size if width is None else width,)
    if architecture.norm == "layernorm-no-weight":
        return ()
    weight = ParameterGroup(f"{name}.weight", "norm", shape, "vector")
    if architecture.norm == "layernorm":
        return weight, ParameterGroup(f"{name}.bias", "norm", shape, "vector")
    return (weight,)


def linear_groups(
    name: str, module: str, shape: tuple[int, int], bias: bool, shards: Shards, *, row: bool = False
) -> Iterator[ParameterGroup]:
    """Weight (out, in) and bias of one linear. Of a row-split linear the bias is whole on every rank."""
    yield ParameterGroup(f"{name}.weight", module, shape, "matrix", shards)
    if bias:
        yield ParameterGroup(f"{name}.bias", module, shape[:1], "vector", "" if row else shards)


def _layer_norms(architecture: Architecture, kind: LayerKind) -> Iterator[ParameterGroup]:
    names = NORM_NAMES[architecture.norms_per_layer]
    if architecture.norm_placement == "branch":
        names = BRANCH_NORM_NAMES
    for name in names if kind.attention_norm else names[1:]:
        yield from norm_groups(architecture, name)


def _attention(architecture: Architecture, kind: LayerKind) -> Iterator[ParameterGroup]:
    queries, keys = architecture.heads * kind.head_dim, kind.kv_heads * kind.head_dim
    if kind.shares_kv:
        keys = 0
    yield from _projections(architecture, "self_attn", queries, keys, "tp_kv", values=not kind.keys_are_values)
    yield from _qk_norms(architecture, kind)
    if architecture.attention_sinks:
        yield ParameterGroup("self_attn.sinks", "attention", (architecture.heads,), "vector", "tp")


def _projections(
    architecture: Architecture, name: str, queries: int, keys: int, kv_shards: Shards, *, values: bool = True
) -> Iterator[ParameterGroup]:
    hidden, bias = architecture.hidden_size, architecture.attention_bias
    if architecture.fused_qkv and keys:
        joint: Shards = "tp_qkv" if kv_shards == "tp_kv" and keys < queries else "tp"
        yield from linear_groups(f"{name}.qkv_proj", "attention", (queries + 2 * keys, hidden), bias, joint)
    else:
        yield from linear_groups(f"{name}.q_proj", "attention", (queries, hidden), bias, "tp")
        for key in ("k_proj", "v_proj")[: (1 + values) if keys else 0]:
            yield from linear_groups(f"{name}.{key}", "attention", (keys, hidden), bias, kv_shards)
    out_bias = architecture.attention_out_bias
    yield from linear_groups(f"{name}.o_proj", "attention", (hidden, queries), out_bias, "tp", row=True)


def _qk_norms(architecture: Architecture, kind: LayerKind) -> Iterator[ParameterGroup]:
    if architecture.qk_norm in ("none", "unweighted"):
        return
    sides: list[tuple[str, int, Shards]] = [("q_norm", architecture.heads, "tp")]
    if not kind.shares_kv:
        sides.append(("k_norm", kind.kv_heads, "tp_kv"))
    for name, heads, shards in sides:
        one = architecture.qk_norm == "head"
        shape = (kind.head_dim if one else heads * kind.head_dim,)
        for tensor in ("weight", "bias")[: 1 + architecture.qk_norm_bias]:
            yield ParameterGroup(f"self_attn.{name}.{tensor}", "norm", shape, "vector", "" if one else shards)


def _latent_attention(architecture: Architecture, mla: LatentAttention) -> Iterator[ParameterGroup]:
    hidden, heads, bias = architecture.hidden_size, architecture.heads, architecture.attention_bias
    if mla.q_lora_rank is None:
        yield from linear_groups("self_attn.q_proj", "attention", (heads * mla.qk_head_dim, hidden), False, "tp")
    else:
        rank = mla.q_lora_rank
        yield from linear_groups("self_attn.q_a_proj", "attention", (rank, hidden), bias, "")
        yield ParameterGroup("self_attn.q_a_layernorm.weight", "norm", (rank,), "vector")
        yield from linear_groups("self_attn.q_b_proj", "attention", (heads * mla.qk_head_dim, rank), False, "tp")
    compressed = (mla.kv_lora_rank + mla.qk_rope_head_dim, hidden)
    yield from linear_groups("self_attn.kv_a_proj_with_mqa", "attention", compressed, bias, "")
    yield ParameterGroup("self_attn.kv_a_layernorm.weight", "norm", (mla.kv_lora_rank,), "vector")
    expanded = (heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank)
    yield from linear_groups("self_attn.kv_b_proj", "attention", expanded, False, "tp")
    out = (hidden, heads * mla.v_head_dim)
    yield from linear_groups("self_attn.o_proj", "attention", out, architecture.attention_out_bias, "tp", row=True)


def _cross_attention(architecture: Architecture) -> Iterator[ParameterGroup]:
    yield from norm_groups(architecture, "cross_attention_layernorm")
    width = architecture.query_width
    yield from _projections(architecture, "cross_attn", width, width, "tp")


def _feed_forward(architecture: Architecture, kind: LayerKind) -> Iterator[ParameterGroup]:
    moe = architecture.moe
    if kind.mlp == "dense" or moe is None:
        if kind.ffn_size:
            yield from _mlp(architecture, "mlp", kind.ffn_size)
        return
    yield from linear_groups(
        "mlp.router", "router", (moe.experts, architecture.hidden_size), moe.router_bias, "", row=True
    )
    yield from _experts(architecture, moe)
    if moe.shared_width:
        yield from _mlp(architecture, "mlp.shared_experts", moe.shared_width, module="shared_experts")
    if moe.shared_gate:
        shape = (1, architecture.hidden_size)
        yield from linear_groups("mlp.shared_expert_gate", "shared_experts", shape, False, "")
    if moe.beside_dense and kind.ffn_size:
        yield from _mlp(architecture, "mlp", kind.ffn_size)


def _mlp(architecture: Architecture, name: str, width: int, module: str = "mlp") -> Iterator[ParameterGroup]:
    hidden, bias = architecture.hidden_size, architecture.mlp_bias
    if architecture.gated and architecture.fused_gate_up:
        yield from linear_groups(f"{name}.gate_up_proj", module, (2 * width, hidden), bias, "tp")
    else:
        for branch in ("gate_proj", "up_proj")[0 if architecture.gated else 1 :]:
            yield from linear_groups(f"{name}.{branch}", module, (width, hidden), bias, "tp")
    yield from linear_groups(f"{name}.down_proj", module, (hidden, width), bias, "tp", row=True)
    if architecture.activation == "xielu":
        for scalar in ("alpha_p", "alpha_n"):
            yield ParameterGroup(f"{name}.act_fn.{scalar}", module, (1,), "vector")


def _experts(architecture: Architecture, moe: MixtureOfExperts) -> Iterator[ParameterGroup]:
    hidden, width = architecture.hidden_size, moe.ffn_size
    shapes = [("up_proj", (width, hidden)), ("down_proj", (hidden, width))]
    if architecture.gated and architecture.fused_experts:
        shapes[0] = ("gate_up_proj", (2 * width, hidden))
    elif architecture.gated:
        shapes.insert(0, ("gate_proj", (width, hidden)))
    for name, shape in shapes:
        yield ParameterGroup(f"mlp.experts.{name}.weight", "moe", shape, "expert", "ep", moe.experts)
        if moe.expert_bias:
            yield ParameterGroup(f"mlp.experts.{name}.bias", "moe", shape[:1], "vector", "ep", moe.experts)


def _extras(architecture: Architecture, kind: LayerKind) -> Iterator[ParameterGroup]:
    position = kind.positions[0]
    for extra in architecture.extra_tensors:
        if position in extra.layers:
            yield ParameterGroup(extra.name, extra.module, extra.shape, kind_of_shape(extra.shape), extra.shards)


def kind_of_shape(shape: tuple[int, ...]) -> Kind:
    """Whether an optimizer that treats matrices apart sees a matrix."""
    return "matrix" if len(shape) > 1 else "vector"
