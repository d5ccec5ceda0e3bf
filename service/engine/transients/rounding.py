"""What torch's caching allocator adds to each tensor of state: sizes in multiples of 512 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from service.engine.architecture import Architecture
from service.engine.elementwise import where
from service.engine.ledger import BYTES_OF, Bundle, Dim
from service.engine.parameters import parameter_groups
from service.engine.stage import Prepared, StageView
from service.engine.timeline import ALWAYS, during
from service.engine.transients.parts import bundle, working

#: kMinBlockSize of c10/cuda/CUDACachingAllocator.h
BLOCK_BYTES = 512
CACHING_ALLOCATOR = "c10/cuda/CUDACachingAllocator.cpp: round_size"
#: state tensors of one parameter that have its shape
MOMENTS = {"adamw": 2, "lion": 1, "sgd-momentum": 1, "sgd": 0}


def block_rounding(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """On one GPU every parameter, gradient and moment is a tensor of its own (sharded or fused buffers are few)."""
    recipe = prepared.recipe
    if recipe.frozen_base or recipe.update_rule not in MOMENTS:
        return
    alone = where(prepared.layout.gpus == 1, 1, 0)
    weights = wasted(prepared.architecture, BYTES_OF[recipe.weights])
    moments = MOMENTS[recipe.update_rule] * wasted(prepared.architecture, BYTES_OF[recipe.moments])
    gradients = wasted(prepared.architecture, BYTES_OF[recipe.gradients[-1]])
    foreach = weights if prepared.run.optimizer_impl == "foreach" else 0
    if recipe.master:
        weights += wasted(prepared.architecture, recipe.master_bytes)
    lasting = ALWAYS if prepared.stack.gradients_persist else during("backward_end", "optimizer_step")
    for name, size, alive in (
        ("weights and moments in blocks", weights + moments, ALWAYS),
        ("gradients in blocks", gradients, lasting),
        ("foreach temporary in blocks", foreach, during("optimizer_step")),
    ):
        if size:
            row = working(
                name, "allocator", (Dim("bytes", size),), "uint8", "small tensors take a whole block", CACHING_ALLOCATOR
            )
            yield bundle("rounding to 512 bytes", (row,), alive, alone)


@lru_cache(maxsize=1024)
def wasted(architecture: Architecture, itemsize: int) -> int:
    """Bytes by which blocks exceed the tensors that they hold, for one tensor a parameter."""
    total = 0
    for group, times in parameter_groups(architecture).rows():
        size = prod(group.shape) * itemsize
        total += times * group.copies * (-size % BLOCK_BYTES)
    return total
