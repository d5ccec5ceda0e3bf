"""A model's parameters as groups: name, shape, how many copies, what may shard them.

Everything that counts parameters goes through here: sizes of states, sharding, pipeline stages, LoRA targets, factored
and matrix-wise optimizers, quantised bases. Counts are integers and exact; a tied head is counted once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from service.engine.architecture import Architecture, LayerKind, layer_kinds
from service.engine.layer_parameters import (
    Kind,
    ParameterGroup,
    encoder_layer_groups,
    kind_of_shape,
    layer_groups,
    linear_groups,
    norm_groups,
)

__all__ = ["Kind", "ModelParameters", "ParameterGroup", "active_count", "count", "parameter_groups"]


@dataclass(frozen=True, eq=False)
class ModelParameters:
    """All parameters of a model by where they sit.

    `layers` has the groups of ONE layer of each kind, `encoder` of one encoder layer, `mtp` of one
    multi-token-prediction module; `encoder_final` and `final` are what follows the last layer, `extra` what no
    transformer layer explains.
    """

    embedding: tuple[ParameterGroup, ...]
    layers: Mapping[LayerKind, tuple[ParameterGroup, ...]]
    final: tuple[ParameterGroup, ...]
    head: tuple[ParameterGroup, ...]
    encoder: tuple[ParameterGroup, ...] = ()
    encoder_layers: int = 0
    encoder_embedding: tuple[ParameterGroup, ...] = ()
    encoder_final: tuple[ParameterGroup, ...] = ()
    mtp: tuple[ParameterGroup, ...] = ()
    mtp_layers: int = 0
    extra: tuple[ParameterGroup, ...] = ()

    def rows(self) -> Iterator[tuple[ParameterGroup, int]]:
        """Every group with how many times it occurs in the whole model."""
        for once in (self.embedding, self.encoder_embedding, self.encoder_final, self.final, self.head, self.extra):
            yield from ((group, 1) for group in once)
        for kind, groups in self.layers.items():
            yield from ((group, len(kind.positions)) for group in groups)
        yield from ((group, self.encoder_layers) for group in self.encoder)
        yield from ((group, self.mtp_layers) for group in self.mtp)

    @cached_property
    def count(self) -> int:
        return sum(group.count * times for group, times in self.rows())

    @cached_property
    def routed_count(self) -> int:
        """Parameters of routed experts, of which each token meets top_k of `experts`."""
        return sum(group.count * times for group, times in self.rows() if group.module == "moe")


def count(architecture: Architecture) -> int:
    """Unique parameters: a tied head once, no vocabulary padding, MTP modules only as far as `mtp_layers` asks."""
    return parameter_groups(architecture).count


def active_count(architecture: Architecture) -> int:
    """Parameters that one token meets, embeddings and head included, without `extra_parameters` (a vision tower)."""
    groups, moe = parameter_groups(architecture), architecture.moe
    text = groups.count - sum(number for _, number in architecture.extra_parameters)
    if moe is None:
        return text
    return text - groups.routed_count + groups.routed_count * moe.top_k // moe.experts


@lru_cache(maxsize=1024)
def parameter_groups(architecture: Architecture) -> ModelParameters:
    """The groups of a model; cached, so that a search pays once."""
    kinds = layer_kinds(architecture)
    layers = {kind: layer_groups(architecture, kind) for kind in kinds}
    encoder = architecture.encoder
    return ModelParameters(
        embedding=tuple(_embedding(architecture)),
        layers=layers,
        final=norm_groups(architecture, "norm") if architecture.final_norm else (),
        head=tuple(_head(architecture)),
        encoder=encoder_layer_groups(architecture),
        encoder_layers=architecture.encoder_layers,
        encoder_embedding=tuple(_encoder_embedding(architecture)) if encoder else (),
        encoder_final=norm_groups(architecture, "encoder.norm") if encoder and architecture.final_norm else (),
        mtp=tuple(_mtp(architecture, layers[kinds[-1]])) if architecture.mtp_layers else (),
        mtp_layers=architecture.mtp_layers,
        extra=tuple(_extra(architecture)),
    )


def _embedding(architecture: Architecture) -> Iterator[ParameterGroup]:
    hidden = architecture.hidden_size
    width = architecture.embedding_size or hidden
    yield ParameterGroup("embed_tokens.weight", "embedding", (architecture.vocab_size, width), "embedding", "tp")
    if width != hidden:
        yield from linear_groups("project_in", "embedding", (hidden, width), False, "")
    if architecture.position == "learned":
        yield _position_table("embed_positions", architecture)
    if architecture.token_types:
        shape = (architecture.token_types, hidden)
        yield ParameterGroup("token_type_embeddings.weight", "embedding", shape, "embedding")
    if architecture.embedding_norm:
        yield from norm_groups(architecture, "embed_norm")
    if architecture.relative_buckets:
        yield _relative_bias("relative_attention_bias", architecture, architecture.heads)


def _encoder_embedding(architecture: Architecture) -> Iterator[ParameterGroup]:
    """What the encoder has of its own; the word embeddings are the decoder's."""
    if architecture.position == "learned":
        yield _position_table("encoder.embed_positions", architecture)
    if architecture.embedding_norm:
        yield from norm_groups(architecture, "encoder.embed_norm")
    if architecture.relative_buckets and architecture.encoder:
        yield _relative_bias("encoder.relative_attention_bias", architecture, architecture.encoder.heads)


def _position_table(name: str, architecture: Architecture) -> ParameterGroup:
    rows = architecture.max_positions + architecture.position_offset
    return ParameterGroup(f"{name}.weight", "embedding", (rows, architecture.hidden_size), "embedding")


def _relative_bias(name: str, architecture: Architecture, heads: int) -> ParameterGroup:
    return ParameterGroup(f"{name}.weight", "attention", (architecture.relative_buckets, heads), "embedding", "")


def _head(architecture: Architecture) -> Iterator[ParameterGroup]:
    hidden = architecture.hidden_size
    if architecture.pooler:
        yield from linear_groups("pooler.dense", "head", (hidden, hidden), True, "")
    if architecture.head != "lm":
        return
    width = architecture.embedding_size or hidden
    if width != hidden:
        yield from linear_groups("project_out", "head", (width, hidden), False, "")
    if not architecture.tied_embeddings:
        yield ParameterGroup("lm_head.weight", "head", (architecture.vocab_size, width), "matrix", "tp")
    if architecture.head_bias:
        yield ParameterGroup("lm_head.bias", "head", (architecture.vocab_size,), "vector", "tp")


def _mtp(architecture: Architecture, layer: tuple[ParameterGroup, ...]) -> Iterator[ParameterGroup]:
    """One multi-token-prediction module (arXiv:2412.19437, section 2.2); embedding and head are the model's own."""
    hidden = architecture.hidden_size
    for name in ("mtp.enorm", "mtp.hnorm"):
        yield from norm_groups(architecture, name)
    yield from linear_groups("mtp.eh_proj", "mtp", (hidden, 2 * hidden), False, "tp")
    yield from (replace(group, name=f"mtp.{group.name}") for group in layer)
    yield from norm_groups(architecture, "mtp.norm")


def _extra(architecture: Architecture) -> Iterator[ParameterGroup]:
    for extra in architecture.extra_tensors:
        if not extra.layers:
            yield ParameterGroup(extra.name, extra.module, extra.shape, kind_of_shape(extra.shape), extra.shards)
    for name, number in architecture.extra_parameters:
        yield ParameterGroup(name, "extra", (number,), "vector")
