"""torchtitan's selective checkpointing: outputs of matrix products and attention are kept, every second product's not.

Products are counted in the order of their calls (torchtitan models/*/parallelize.py, `_get_custom_policy`): the first,
third, … keep their results. Grouped products of experts and the router's product are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import LayerKind
from service.engine.ledger import Dim, Row
from service.engine.saved_tensors import attention
from service.engine.saved_tensors.scope import Scope

POLICY = "torchtitan models/*/parallelize.py: save list of compute and communication ops, odd matrix products"
#: Without torch.compile another 3.5·h bytes a token and layer stay (torchtitan benchmark 2024-12 against its compiled
#: rows, at two batch sizes); which tensors they are is not known.
EAGER_HALVES_OF_HIDDEN = 7

Product = tuple[str, Dim, Dim]


def products(scope: Scope, kind: LayerKind) -> Iterator[Product]:
    """(name, tokens, output width) of the matrix products of one layer in the order of their calls."""
    mla = scope.architecture.mla
    if mla is None:
        yield "query projection", scope.tokens, scope.query
        yield "key projection", scope.tokens, scope.kv
        yield "value projection", scope.tokens, scope.kv
    else:
        if mla.q_lora_rank is not None:
            yield "query down projection", scope.tokens, Dim("r_q", mla.q_lora_rank)
        yield "query projection", scope.tokens, Dim("a·d_qk", scope.heads.size * mla.qk_head_dim, ("tp",))
        compressed = mla.kv_lora_rank + mla.qk_rope_head_dim
        yield "key-value down projection", scope.tokens, Dim("r_kv", compressed)
        width = mla.qk_nope_head_dim + mla.v_head_dim
        yield "key-value projection", scope.tokens, Dim("a·(d_k + d_v)", scope.heads.size * width, ("tp",))
    yield "output projection", scope.tokens_sp, scope.hidden
    width_of_mlp = scope.ffn(kind)
    if kind.mlp == "moe":
        moe = scope.architecture.moe
        if moe is None or not moe.shared_width:
            return
        width_of_mlp = scope.shared_ffn
    names = ("gate", "up") if scope.architecture.gated else ("up",)
    for name in names:
        yield f"{name} projection", scope.tokens, width_of_mlp
    yield "down projection", scope.tokens_sp, scope.hidden


def op_policy(scope: Scope, kind: LayerKind, boundary: Row) -> Iterator[Row]:
    """What one layer keeps under the op policy, its input included."""
    yield boundary
    # NVFP4 products are operations of their own, which the policy's list does not have
    known = () if scope.run.fp8_recipe == "nvfp4" else products(scope, kind)
    for count, (name, tokens, width) in enumerate(known, start=1):
        if count % 2:
            yield scope.saved(
                f"output of the {name}", "selective checkpoint", (tokens, width), scope.compute,
                why="the policy keeps every second matrix product", source=POLICY,
            )  # fmt: skip
    yield attention.log_sum_exp(scope)
    yield attention.output(scope)
    if kind.mlp == "moe" and "all-to-all" in scope.run.recompute.modules:
        yield scope.saved(
            "communicated tokens", "selective checkpoint", (scope.tokens, scope.hidden), scope.compute,
            why="the policy keeps what was communicated; measured as one hidden state a token", source=POLICY,
        )  # fmt: skip
    if not scope.run.compile:
        width = Dim("3.5·h/2", EAGER_HALVES_OF_HIDDEN * scope.hidden.size // 4)
        yield scope.saved(
            "kept without torch.compile", "selective checkpoint", (scope.tokens_sp, width), scope.compute,
            why="seen in measurements; not identified", source=POLICY,
        )  # fmt: skip


#: rows of the whole layer that the policy keeps under their own name, so that backward need not build them again
KEPT_NAMES = frozenset({"layer input", "attention output", "log-sum-exp", "gate"})
