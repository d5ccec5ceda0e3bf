"""The dimensions of one micro-batch on one rank, and the kernels that run over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from service.engine.architecture import Architecture, LayerKind
from service.engine.elementwise import Int, ceil_div, maximum, share, where
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import Dim, Row, tensor
from service.engine.recipe import Recipe
from service.engine.run import Run
from service.engine.stacks import Stack

#: fused: one kernel that keeps its input and statistics; upcast: Python code that keeps an fp32 copy and x̂ besides
NormKernel = Literal["fused", "upcast"]
#: flash: no scores; scores: the s × s probabilities stay, in `score_dtypes`
AttentionKernel = Literal["flash", "scores"]
#: fused: gate and up and their product; eager: the activated gate as well
MlpKernel = Literal["fused", "eager"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Which variant of each kernel a stack runs; every field picks rows, none holds a number."""

    norm: NormKernel
    attention: AttentionKernel
    mlp: MlpKernel
    #: dtypes in which softmax leaves its result (fp32 and a cast copy, or the compute dtype alone)
    score_dtypes: tuple[str, ...]
    #: keys and values are repeated to all query heads before the scores
    expand_kv: bool
    #: fused activation kernels that also multiply with the router's weight; None where that happens after the experts
    weighting_activations: frozenset[str] | None = None
    #: experts' outputs are kept until they were put back in the order of the tokens (dropless dispatch)
    keeps_unpermuted: bool = False
    #: attention writes its output in another order of dimensions than the projection reads
    reorders_output: bool = False
    #: the loss is compiled and keeps 16-bit logits instead of an fp32 log-softmax
    compiled_loss: bool = False
    #: `chunked` takes only the loss in slices; the logits are whole (torchtune, compiled)
    slices_whole_logits: bool = False
    #: `selective` recompute means the op policy of torchtitan
    op_policy: bool = False
    #: context-parallel ring attention keeps the keys and values it sends, not those of the projection
    ring_sends_copies: bool = False


def kernels(stack: Stack, run: Run, recipe: Recipe, gpu: Gpu) -> Kernels:
    """The kernels that `stack` runs for this run on this GPU."""
    eager = run.attention == "eager"
    compute = recipe.compute
    megatron = stack.name == "megatron"
    # eager scaled products are operations that the op policy's list does not have: everything stays
    eager_fp8 = run.fp8_recipe is not None and not run.compile
    python_softmax = stack.name in ("huggingface", "deepspeed") and "softmax" not in run.kernels
    upcast_softmax = eager and compute != "fp32" and python_softmax
    return Kernels(
        norm="fused" if stack.fused_norm or run.compile or "rmsnorm" in run.kernels else "upcast",
        attention="scores" if eager else "flash",
        mlp="fused" if stack.fused_mlp or run.compile or "swiglu" in run.kernels else "eager",
        score_dtypes=("fp32", compute) if upcast_softmax else (compute,),
        expand_kv=eager and stack.name in ("huggingface", "deepspeed"),
        weighting_activations=run.kernels & {"swiglu", "gelu"} if megatron else None,
        keeps_unpermuted=megatron and run.moe_capacity is None,
        reorders_output=megatron and not eager and _reorders(run, gpu),
        compiled_loss=stack.name == "torchtitan" and "cross-entropy" in run.kernels,
        slices_whole_logits=stack.name == "huggingface",
        op_policy=stack.name == "torchtitan" and run.recompute.kind == "selective" and not eager_fp8,
        ring_sends_copies=megatron and run.cp_comm == "p2p",
    )


def _reorders(run: Run, gpu: Gpu) -> bool:
    """Whether Transformer Engine takes FlashAttention rather than cuDNN, which reads sequence-first tensors as they
    are: on Ampere, and on Blackwell when deterministic kernels are asked for."""
    major = (gpu.compute_capability or "").split(".")[0]
    return major == "8" or (major == "10" and run.deterministic)


class Scope:
    """One micro-batch on one rank: architecture, run, layout and kernels, with the local size of every dimension.

    Symbols: b micro-batch, s sequence, h hidden, A query width, K key width, a heads, f MLP width, V vocabulary.
    """

    def __init__(self, architecture: Architecture, run: Run, layout: Layout, recipe: Recipe, kernels: Kernels) -> None:
        self.architecture = architecture
        self.run = run
        #: sizes of the symbols of traced programs, by kind of layer (kept here so that they are made once)
        self.symbol_sizes: dict[tuple[LayerKind, bool], object] = {}
        self.layout = layout
        self.recipe = recipe
        self.kernels = kernels
        self.compute = recipe.compute
        #: dtype in which linear layers keep their inputs: Transformer Engine quantises them under fp8
        self.linear_input = "fp8" if run.fp8_recipe and "te" in run.kernels else recipe.compute
        self.residual = run.residual_dtype or ("fp32" if recipe.precision == "amp" else recipe.compute)
        cp: tuple[str, ...] = ("cp",)
        sp: tuple[str, ...] = ("tp",) if layout.sp else ()
        per_rank = ceil_div(run.sequence_length, layout.cp)
        self.tokens = Dim("b·s", run.micro_batch * per_rank, cp)
        self.tokens_sp = Dim("b·s", run.micro_batch * ceil_div(per_rank, layout.sequence_divisor), cp + sp)
        self.queries = Dim("s", per_rank, cp)
        self.keys = Dim("s", run.sequence_length)
        self.batch = Dim("b", run.micro_batch)
        self.hidden = Dim("h", architecture.hidden_size)
        tp = ("tp",)
        heads = ceil_div(architecture.heads, layout.tp)
        kv_heads = maximum(ceil_div(architecture.kv_heads, layout.tp), 1)
        self.heads = Dim("a", heads, tp)
        self.query = Dim("A", heads * architecture.head_dim, tp)
        self.kv = Dim("K", kv_heads * architecture.head_dim, tp)
        self.value = Dim("A", heads * (architecture.value_width // architecture.heads), tp)
        self.vocab = Dim("V", padded_vocab(architecture, run, layout) // layout.vocabulary_ranks, tp)

    def ffn(self, kind: LayerKind) -> Dim:
        """Width of the dense MLP of this kind of layer."""
        return Dim("f", ceil_div(kind.ffn_size or 0, self.layout.tp), ("tp",))

    @cached_property
    def expert_ffn(self) -> Dim:
        moe = self.architecture.moe
        return Dim("m", ceil_div(moe.ffn_size if moe else 0, self.layout.etp), ("etp",))

    @property
    def separate_expert_weighting(self) -> bool:
        """Whether an expert's activation is kept before the router's weight multiplies it, and after."""
        fused = self.kernels.weighting_activations
        return fused is not None and ("swiglu" if self.architecture.gated else "gelu") not in fused

    @cached_property
    def shared_ffn(self) -> Dim:
        moe = self.architecture.moe
        return Dim("f_sh", ceil_div(moe.shared_width if moe else 0, self.layout.tp), ("tp",))

    @cached_property
    def routed_tokens(self) -> Dim:
        """Token copies that reach the experts of this rank. With even routing every rank sends top_k copies of its own
        tokens (a 1/tp part when the sequence is split) and receives as many; etp ranks gather each other's.

        A capacity factor pads (or drops) to that many times the even share; without one, the fullest of several
        expert-parallel ranks may hold `routing_skew_permille` thousandths of it. One rank with all experts holds
        every copy, however they are spread.
        """
        moe, run = self.architecture.moe, self.run
        even = self.tokens_sp.size * (moe.top_k if moe else 0) * self.layout.etp
        if run.moe_capacity is not None:
            even = share(even, round(run.moe_capacity * 1000), 1000)
        elif run.routing_skew_permille != 1000:
            even = where(self.layout.ep > 1, share(even, run.routing_skew_permille, 1000), even)
        return Dim("k·b·s", even, self.tokens_sp.sharded_by)

    def saved(
        self, name: str, module: str, shape: tuple[Dim, ...], dtype: str, *, why: str, source: str, dropped_by: str = ""
    ) -> Row:
        """A row of `activations`; `dropped_by` names the selective policies that free it, in one string."""
        return tensor(
            "activations", name, module, shape, dtype, why=why, source=source, dropped_by=tuple(dropped_by.split())
        )


def padded_vocab(architecture: Architecture, run: Run, layout: Layout) -> Int:
    """Vocabulary rows that the ranks hold together: padded to `vocab_multiple` and to a multiple of tp."""
    multiple: Int = 1 if run.vocab_multiple is None else run.vocab_multiple
    padded = ceil_div(architecture.vocab_size, multiple) * multiple
    return ceil_div(padded, layout.tp) * layout.tp
