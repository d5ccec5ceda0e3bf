"""A GPU that the catalogue does not have, described by its memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.catalog.members import Members
from service.engine.hardware import Gpu

LEAST_MEMORY, MOST_MEMORY = 2**20, 2**50
MOST_PER_NODE, MOST_TFLOPS, MOST_PRICE = 1024, 10**6, 10_000
KEYS = ("memory_bytes", "gpus_per_node", "dense_tflops", "price_usd_per_hour")
TFLOPS_KEYS = ("bf16", "fp16", "fp8", "fp4", "tf32", "fp32")
CUSTOM_NOTE = (
    "a GPU that the catalogue does not have: context, communicators and allocator are taken as those of NVIDIA"
)


def custom_gpu(spec: Mapping[str, Any], pointer: str) -> Gpu:
    """The device; without dense_tflops nothing is known of its speed, and bf16 is taken as given.

    Raises InvalidInput with a pointer to every unknown, missing or impossible member.
    """
    said = Members(spec, pointer, KEYS)
    memory = said.size("memory_bytes", MOST_MEMORY, least=LEAST_MEMORY)
    node = said.size("gpus_per_node", MOST_PER_NODE, usual=8)
    price = said.number("price_usd_per_hour", 0, MOST_PRICE)
    tflops = _tflops(said)
    said.raise_errors()
    return Gpu(
        id="custom",
        name=f"custom GPU, {memory / 2**30:,.1f} GiB",
        vendor="NVIDIA",
        memory_bytes=memory,
        gpus_per_node=node,
        scale_up_domain=node,
        dense_tflops=tflops,
        price_usd_per_hour=price,
    )


def _tflops(said: Members) -> Mapping[str, float | None]:
    """A number stands for the 16-bit formats; an object says them one by one."""
    value = said.get("dense_tflops")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        number = said.number("dense_tflops", 0.01, MOST_TFLOPS)
        return {"bf16": number, "fp16": number}
    inner = said.inner("dense_tflops", TFLOPS_KEYS)
    return {key: inner.number(key, 0.01, MOST_TFLOPS) for key in TFLOPS_KEYS} if inner else {}
