"""Bytes of state per parameter, and why each exists: precision × optimizer × method × stack.

Under the classic recipe (mixed-precision Adam) a parameter costs 2 bytes of weight, 2 of gradient, 4 of master copy and
8 of moments: 16. That is accounting, not a law; every figure here follows from the dtypes a stack really keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from service.engine.ledger import BYTES_OF

Method = Literal["full", "lora", "qlora"]

#: Why a training step needs each of the state terms (the failure it prevents).
WHY = {
    "weights": "forward and backward compute with them",
    "gradients": "the correction just computed; the update needs all of it at once",
    "master_weights": "an update below 2^-8 of a bf16 weight rounds away, so an fp32 copy takes the updates",
    "optimizer_moments": "Adam divides a running mean by a running mean square; both outlive the step",
}

#: Block-wise 8-bit states keep one fp32 scale per 256 values (bitsandbytes 0.43+, optim/optimizer.py: blockwise, 256).
EIGHT_BIT_BLOCK = 256
#: Tensors below this many elements keep fp32 states (bitsandbytes `min_8bit_size`).
EIGHT_BIT_MINIMUM = 4096
#: torchao `AdamW4bit`: two values a byte, one fp32 scale per 128 values.
FOUR_BIT_BLOCK = 128

#: Bytes per frozen linear parameter. nf4: one fp32 scale per 64 values; nf4-dq: those scales in 8 bits with an fp32
#: scale per 256 of them (QLoRA, arXiv:2305.14314, section 3); gptq-int4: an fp16 scale and a 4-bit zero per 128 values.
BASE_WEIGHT_BYTES: Mapping[str, Fraction] = {
    "fp32": Fraction(4),
    "bf16": Fraction(2),
    "fp16": Fraction(2),
    "nf4": Fraction(1, 2) + Fraction(4, 64),
    "nf4-dq": Fraction(1, 2) + Fraction(1, 64) + Fraction(4, 64 * 256),
    "gptq-int4": Fraction(1, 2) + Fraction(2, 128) + Fraction(1, 2 * 128),
}
QUANTIZED_BASES = frozenset({"nf4", "nf4-dq", "gptq-int4"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Dtypes of everything that scales with parameters.

    `compute` is what matrix products run in; `weights` what the stored parameters are; `gradients` one dtype per
    gradient buffer (fp16 Megatron keeps two); `master` None when the stored weights take the updates themselves.
    `casts` says that weights are cast for compute (autocast, or FSDP's 16-bit gather of fp32 shards).
    """

    precision: str
    compute: str
    weights: str
    gradients: tuple[str, ...]
    master: str | None
    moments: str
    optimizer: str = "adamw"
    method: Method = "full"
    base_weights: str = "bf16"
    adapter_dtype: str = "fp32"
    lora_rank: int = 16
    lora_targets: tuple[str, ...] = ()
    casts: bool = False

    @property
    def weight_bytes(self) -> int:
        return BYTES_OF[self.weights]

    @property
    def gradient_bytes(self) -> int:
        return sum(BYTES_OF[dtype] for dtype in self.gradients)

    @property
    def master_bytes(self) -> int:
        return BYTES_OF[self.master] if self.master else 0

    @property
    def frozen_base(self) -> bool:
        return self.method != "full"

    @property
    def moments_on_host(self) -> bool:
        """Paged optimizers keep their moments in pageable host memory."""
        return self.optimizer.startswith("paged-")

    @property
    def update_rule(self) -> str:
        """The optimizer without where its moments live."""
        return self.optimizer.removeprefix("paged-")


def moment_bytes(recipe: Recipe, count: int, shape: tuple[int, ...], copies: int, *, matrix: bool) -> int:
    """Bytes of optimizer state of one parameter group: `copies` tensors of `shape`, `count` elements in all.

    `matrix` is False for embeddings, heads and vectors, which Muon leaves to AdamW. Sources: AdamW keeps two moments
    (arXiv:1711.05101), Lion and SGD with momentum one, Adafactor row and column sums of matrices
    (arXiv:1804.04235, beta1 = 0), Muon one for matrices; 8- and 4-bit states as named above.
    """
    itemsize = BYTES_OF[recipe.moments]
    rule = recipe.update_rule
    if rule == "sgd":
        return 0
    if rule in ("sgd-momentum", "lion"):
        return count * itemsize
    if rule == "muon":
        return count * itemsize * (1 if matrix else 2)
    if rule == "adafactor":
        if len(shape) < 2:
            return count * 4
        rows = count // copies // shape[-1]
        return copies * (rows + shape[-1]) * 4
    if rule in ("adamw-8bit", "adamw-4bit"):
        if count // copies < EIGHT_BIT_MINIMUM:
            return count * 2 * 4
        block, halves = (EIGHT_BIT_BLOCK, 2) if rule == "adamw-8bit" else (FOUR_BIT_BLOCK, 1)
        blocks = copies * -(-(count // copies) // block)
        return count * halves + 2 * 4 * blocks
    return count * 2 * itemsize
