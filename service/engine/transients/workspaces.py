"""Scratch that libraries take from torch's allocator."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Bundle, Dim, Row
from service.engine.stage import Prepared, StageView
from service.engine.timeline import ALWAYS
from service.engine.transients.parts import bundle, working

CUBLAS = "torch aten/src/ATen/cuda/CublasHandlePool.cpp: a workspace per handle, a handle per thread that multiplies"
TRANSFORMER_ENGINE = "TransformerEngine cpp_extensions/gemm.py: get_workspace, get_multi_stream_cublas_workspace"
MIB = 1 << 20
#: cuBLAS workspace by the major compute capability: 32 MiB from Hopper on, ":4096:2:16:8" (8.125 MiB) before
CUBLAS_BYTES = {"9": 32 * MIB, "10": 32 * MIB, "12": 32 * MIB}
CUBLAS_BEFORE_HOPPER_BYTES = 8_519_680
#: Deterministic kernels need CUBLAS_WORKSPACE_CONFIG=:4096:8, which is 32 MiB on every GPU.
CUBLAS_DETERMINISTIC_BYTES = 32 * MIB
#: Forward runs in the main thread, backward in autograd's: two handles.
CUBLAS_HANDLES = 2
TRANSFORMER_ENGINE_BEFORE_HOPPER_BYTES = 4 * MIB
#: Grouped products run on four streams, each with a workspace of its own.
GROUPED_STREAMS = 4


def workspaces(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Scratch of cuBLAS and Transformer Engine, taken once and never given back."""
    capability = prepared.gpu.compute_capability
    if capability is None:
        return
    major, run = capability.split(".")[0], prepared.run
    size = CUBLAS_DETERMINISTIC_BYTES if run.deterministic else CUBLAS_BYTES.get(major, CUBLAS_BEFORE_HOPPER_BYTES)
    rows = [_workspace("cuBLAS workspaces", CUBLAS_HANDLES * size, CUBLAS)]
    if "te" in run.kernels:
        one = CUBLAS_BYTES.get(major, TRANSFORMER_ENGINE_BEFORE_HOPPER_BYTES)
        grouped = prepared.architecture.moe is not None and "grouped-gemm" in run.kernels
        streams = 1 + (GROUPED_STREAMS if grouped else 0)
        rows.append(_workspace("Transformer Engine workspaces", streams * one, TRANSFORMER_ENGINE))
    yield bundle("workspaces", tuple(rows), ALWAYS)


def _workspace(name: str, size: int, source: str) -> Row:
    return working(name, "workspace", (Dim("bytes", size),), "uint8", "partial sums of split products", source)
