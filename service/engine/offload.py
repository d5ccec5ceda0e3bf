"""What a run keeps in host memory instead of on the GPU.

`optimizer` takes master weights and moments (and, where the code steps on the CPU shard by shard, the gradients),
`moments` the moments alone, `parameters` the stored weights (gathered layers stay `working`), `activations` what layers
save. `offload_fraction` is the share of each that leaves.
"""

from __future__ import annotations

from collections.abc import Iterable

from service.engine.elementwise import Int
from service.engine.ledger import Row, TermName
from service.engine.recipe import Recipe
from service.engine.run import Run
from service.engine.stacks import Stack

#: fractions are kept in thousandths, so that bytes stay integers
WHOLE = 1000

TERMS_OF: dict[str, tuple[TermName, ...]] = {
    "optimizer": ("master_weights", "optimizer_moments"),
    "moments": ("optimizer_moments",),
    "parameters": ("weights",),
    "activations": ("activations",),
}
#: DeepSpeed's ZeRO-Offload (arXiv:2101.06840, section 4.1) and FSDP's CPUOffload send each reduced gradient to the
#: host; Megatron-core's hybrid optimizer copies from its gradient buffer, which stays.
GRADIENTS_FOLLOW = frozenset({"deepspeed", "huggingface", "torchtitan", "reference"})


def offloaded_terms(run: Run, recipe: Recipe, stack: Stack) -> dict[TermName, int]:
    """Thousandths of each term that are on the host."""
    share = round(run.offload_fraction * WHOLE)
    shares: dict[TermName, int] = {term: share for name in run.offload for term in TERMS_OF[name]}
    if recipe.moments_on_host:
        shares["optimizer_moments"] = WHOLE
    if "optimizer" in run.offload and stack.name in GRADIENTS_FOLLOW:
        shares["gradients"] = share
    return shares


def on_device(rows: Iterable[Row], shares: dict[TermName, int]) -> tuple[Row, ...]:
    """The rows with what stays on the GPU of each; rows that leave altogether are gone."""
    kept = []
    for row in rows:
        gone = shares.get(row.term, 0)
        if gone == 0:
            kept.append(row)
        elif gone < WHOLE:
            kept.append(row._replace(bytes=row.bytes - row.bytes * gone // WHOLE))
    return tuple(kept)


def on_host(rows: Iterable[Row], shares: dict[TermName, int]) -> Int:
    """Bytes of the rows that are on the host."""
    total: Int = 0
    for row in rows:
        total = total + row.bytes * shares.get(row.term, 0) // WHOLE
    return total
