"""The accelerator a run is sized for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device as its driver presents it.

    `memory_bytes` is what an allocator can see (CUDA/HIP total), not the label on the box. `dense_tflops` maps a
    precision ("bf16", "fp16", "fp8", "tf32", "fp32") to the dense peak in 10^12 FLOP/s, without structured sparsity.
    `scale_up_domain` is how many GPUs share NVLink or its like (72 in an NVL72 rack, 8 in an HGX node).
    """

    id: str
    name: str
    vendor: str
    memory_bytes: int
    gpus_per_node: int = 8
    scale_up_domain: int = 8
    architecture: str | None = None
    compute_capability: str | None = None
    dense_tflops: Mapping[str, float | None] = field(default_factory=dict)
    #: 10^9 bytes a second to its own memory
    memory_gb_s: float | None = None
    #: 10^9 bytes a second to the other GPUs of the scale-up domain, both directions together
    interconnect_gb_s: float | None = None
    price_usd_per_hour: float | None = None
    price_date: str | None = None
    memory_estimated: bool = False

    @property
    def runtime_modelled(self) -> bool:
        """Whether context, communicators and allocator of this vendor are modelled at all."""
        return self.vendor in ("NVIDIA", "AMD")

    @property
    def has_bf16(self) -> bool:
        """Whether matrix units multiply bf16 (V100, T4 and P100 do not)."""
        return self.dense_tflops.get("bf16") is not None or not self.dense_tflops
