"""How a run is spread over GPUs: the parallel degrees, what each divides, and which combinations cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from service.engine.architecture import Architecture
from service.engine.elementwise import Int, maximum, minimum
from service.engine.errors import FieldError

Shard = Literal["none", "optimizer", "gradients", "parameters"]
SHARDS: tuple[Shard, ...] = ("none", "optimizer", "gradients", "parameters")
#: ranks of `Shard`, so that "at least ZeRO-2" is a comparison
SHARD_LEVEL: dict[str, int] = {name: level for level, name in enumerate(SHARDS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees of one run. Degrees may be arrays, one entry per candidate layout; `sp` and `shard` may not.

    `dp` counts data-parallel replicas, so gpus = tp·pp·cp·dp. `shard_degree` below dp·cp is hybrid sharding.
    """

    tp: Int = 1
    sp: bool = False
    pp: Int = 1
    vpp: Int = 1
    cp: Int = 1
    ep: Int = 1
    etp: Int = 1
    dp: Int = 1
    shard: Shard = "none"
    shard_degree: Int | None = None
    stage_layers: tuple[int, ...] | None = None
    #: embedding and head are split over all pipeline stages (vocabulary-parallel pipelines, arXiv:2411.05288)
    vocabulary_over_pipeline: bool = False

    @property
    def vocabulary_ranks(self) -> Int:
        """Ranks that share one copy of the vocabulary tables."""
        return self.tp * self.pp if self.vocabulary_over_pipeline else self.tp

    @property
    def gpus(self) -> Int:
        return self.tp * self.pp * self.cp * self.dp

    @property
    def data_ranks(self) -> Int:
        """Ranks that hold the same part of the model: dp·cp."""
        return self.dp * self.cp

    @property
    def sequence_divisor(self) -> Int:
        """What divides the sequence outside attention and MLP: tp under sequence parallelism, else 1."""
        return self.tp if self.sp else 1

    def shard_ranks(self, level: Shard, *, expert: bool = False) -> Int:
        """Over how many ranks a state is split when it is sharded from `level` on.

        Dense parameters: dp·cp (or `shard_degree`). Routed experts are already divided by ep·etp, so their replicas,
        and with them the ranks that can share them, are dp·cp·tp / (ep·etp) (Megatron-core `expert_data_parallel`).
        """
        if SHARD_LEVEL[self.shard] < SHARD_LEVEL[level]:
            return 1
        replicas = maximum(self.data_ranks * self.tp // (self.ep * self.etp), 1) if expert else self.data_ranks
        return replicas if self.shard_degree is None else minimum(self.shard_degree, replicas)

    def divisor(self, shards: str, kv_heads: int) -> Int:
        """What divides a parameter group that is split by `shards` ('', 'tp', 'tp_kv', 'ep')."""
        if shards == "":
            return 1
        if shards == "tp":
            return self.tp
        if shards == "tp_kv":
            return minimum(self.tp, kv_heads)
        return self.ep * self.etp


def even_degrees(whole: int, most: int = 64) -> list[int]:
    """Degrees up to `most` that divide `whole`, in ascending order."""
    return [degree for degree in range(1, min(whole, most) + 1) if whole % degree == 0]


def _nearest_degrees(whole: int, asked: int) -> tuple[str, ...]:
    possible = sorted(even_degrees(whole, max(64, 2 * asked)), key=lambda degree: (abs(degree - asked), degree))
    return tuple(str(degree) for degree in possible[:2])


def impossible(architecture: Architecture, layout: Layout) -> Iterator[FieldError]:
    """Every rule of the architecture that a layout of plain degrees breaks (none: the layout can be built)."""
    tp, pp, cp, ep = (int(degree) for degree in (layout.tp, layout.pp, layout.cp, layout.ep))
    if architecture.heads % tp:
        near = _nearest_degrees(architecture.heads, tp)
        yield FieldError(
            "/tp", f"{architecture.heads} attention heads cannot be split over tp={tp}", str(tp),
            f"a divisor of the {architecture.heads} heads", near,
        )  # fmt: skip
    elif architecture.mla is None and architecture.kv_heads % tp and tp % architecture.kv_heads:
        near = _nearest_degrees(architecture.kv_heads, tp)
        yield FieldError(
            "/tp", f"{architecture.kv_heads} key-value heads and tp={tp}: neither divides the other", str(tp),
            f"a divisor or a multiple of the {architecture.kv_heads} key-value heads", near,
        )  # fmt: skip
    width = architecture.ffn_size
    if width is not None and width % tp:
        yield FieldError(
            "/tp", f"MLP width {width} cannot be split over tp={tp}", str(tp), f"a divisor of {width}",
            _nearest_degrees(width, tp),
        )  # fmt: skip
    yield from _impossible_sharding(layout, int(layout.dp) * cp)
    yield from _impossible_pipeline(architecture, layout, pp)
    yield from _impossible_experts(architecture, layout, tp * cp * int(layout.dp), ep)


def _impossible_sharding(layout: Layout, data_ranks: int) -> Iterator[FieldError]:
    degree = layout.shard_degree
    if degree is not None and data_ranks % int(degree):
        yield FieldError(
            "/shard_degree", f"shard_degree={degree} does not divide the dp·cp = {data_ranks} data-parallel ranks",
            str(degree), f"a divisor of {data_ranks}", _nearest_degrees(data_ranks, int(degree)),
        )  # fmt: skip


def impossible_sequence(layout: Layout, sequence_length: int) -> Iterator[FieldError]:
    """Context parallelism cuts a sequence into equal parts."""
    cp = int(layout.cp)
    if sequence_length % cp:
        near = _nearest_degrees(sequence_length, cp)
        yield FieldError(
            "/cp", f"a sequence of {sequence_length} tokens cannot be cut into cp={cp} equal parts", str(cp),
            f"a divisor of {sequence_length}", near,
        )  # fmt: skip


def _impossible_pipeline(architecture: Architecture, layout: Layout, pp: int) -> Iterator[FieldError]:
    vpp = int(layout.vpp)
    chunks = pp * vpp
    if layout.stage_layers is not None:
        if len(layout.stage_layers) != chunks or sum(layout.stage_layers) != architecture.layers:
            yield FieldError(
                "/stage_layers",
                f"stage_layers has {len(layout.stage_layers)} numbers that sum to {sum(layout.stage_layers)}",
                str(list(layout.stage_layers)),
                f"{chunks} numbers (pp·vpp) that sum to {architecture.layers} layers",
            )
        return
    if pp > 1 and architecture.encoder_layers:
        yield FieldError("/pp", "pipelines of encoder-decoder models are not modelled", str(pp), "1", ("1",))
    if architecture.layers % chunks:
        key, asked = ("/pp", pp) if vpp == 1 else ("/vpp", vpp)
        whole = architecture.layers if vpp == 1 else max(architecture.layers // pp, 1)
        yield FieldError(
            key, f"{architecture.layers} layers do not split evenly over pp·vpp = {chunks} chunks", str(asked),
            "a divisor, or say stage_layers for an uneven split", _nearest_degrees(whole, asked),
        )  # fmt: skip


def _impossible_experts(architecture: Architecture, layout: Layout, ranks: int, ep: int) -> Iterator[FieldError]:
    moe = architecture.moe
    if moe is None:
        if ep > 1:
            yield FieldError("/ep", "this model has no experts to spread", str(ep), "1", ("1",))
        return
    if moe.experts % ep:
        yield FieldError(
            "/ep", f"{moe.experts} experts cannot be spread evenly over ep={ep}", str(ep),
            f"a divisor of {moe.experts}", _nearest_degrees(moe.experts, ep),
        )  # fmt: skip
    etp = int(layout.etp)
    if moe.ffn_size % etp:
        yield FieldError(
            "/etp", f"expert width {moe.ffn_size} cannot be split over etp={etp}", str(etp),
            f"a divisor of {moe.ffn_size}", _nearest_degrees(moe.ffn_size, etp),
        )  # fmt: skip
    if ranks % (ep * etp):
        yield FieldError(
            "/ep", f"ep·etp = {ep * etp} does not divide the {ranks} ranks of tp·cp·dp", str(ep),
            f"a divisor of {ranks} / etp", _nearest_degrees(max(ranks // etp, 1), ep),
        )  # fmt: skip
