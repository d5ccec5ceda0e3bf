"""Scratch that libraries take from torch's allocator."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Bundle, Dim
from service.engine.stage import Prepared, StageView
from service.engine.timeline import ALWAYS
from service.engine.transients.parts import bundle, working

CUBLAS = "torch CUDABlas.cpp getChosenWorkspaceSize; TransformerEngine cublas workspace"
MIB = 1 << 20
#: cuBLAS workspace per process by compute capability (torch: 32 MiB from Hopper on, 8.125 MiB before)
CUBLAS_BYTES = {"9": 32 * MIB, "10": 32 * MIB, "12": 32 * MIB}
CUBLAS_BEFORE_HOPPER_BYTES = 8_519_680


def workspaces(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Scratch of cuBLAS, taken from torch's allocator and never given back."""
    capability = prepared.gpu.compute_capability
    if capability is None:
        return
    size = CUBLAS_BYTES.get(capability.split(".")[0], CUBLAS_BEFORE_HOPPER_BYTES)
    rows = [working("cuBLAS workspace", "workspace", (Dim("bytes", size),), "uint8", "split-K partial sums", CUBLAS)]
    if "te" in prepared.run.kernels:
        rows.append(
            working(
                "Transformer Engine workspace", "workspace", (Dim("bytes", size),), "uint8", "cublasLt scratch", CUBLAS
            )
        )
    yield bundle("workspaces", tuple(rows), ALWAYS)
