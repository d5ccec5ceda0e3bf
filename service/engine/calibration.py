"""What devices and networks reach of their data sheets: the constants behind step times.

Fitted together on the published runs of tests/benchmarks/throughput.jsonl (mean absolute log error, every source
weighing by the root of its rows); docs/recommendation.md shows what is left per source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Shares of the dense peak that one generation reaches, and the network beside it.

    `attention` is FlashAttention-2 as PyTorch and Hugging Face call it, `attention_te` cuDNN's as Transformer Engine
    does; both count half of the causal scores. `network_gb_s`: 10^9 bytes a second one way, per GPU, between scale-up
    domains (400 Gb/s NICs beside Hopper and Blackwell, 200 beside A100, 100 before, 800 beside GB300).
    `measured` says whether published runs of this generation are in the fit.
    """

    matmul: float
    attention: float
    attention_te: float
    network_gb_s: float
    measured: bool = True


_BLACKWELL = Calibration(matmul=0.44, attention=0.25, attention_te=0.40, network_gb_s=50.0)

#: by the catalogue's architecture name
CALIBRATION: Mapping[str, Calibration] = {
    "Volta": Calibration(matmul=0.60, attention=0.25, attention_te=0.30, network_gb_s=12.5, measured=False),
    "Ampere": Calibration(matmul=0.80, attention=0.34, attention_te=0.50, network_gb_s=25.0),
    "Hopper": Calibration(matmul=0.60, attention=0.19, attention_te=0.47, network_gb_s=50.0),
    "Blackwell": _BLACKWELL,
    "Blackwell Ultra": Calibration(matmul=0.54, attention=0.25, attention_te=0.40, network_gb_s=100.0),
}
OTHER = Calibration(matmul=0.45, attention=0.20, attention_te=0.30, network_gb_s=25.0, measured=False)

#: tokens of a micro-batch, and local width of a matrix, at which a product runs at half its best rate
HALF_RATE_TOKENS = 250.0
HALF_RATE_WIDTH = 840.0
#: how often norms, activations, residuals and casts move a layer's saved tensors, and how much oftener unfused code
ELEMENTWISE_PASSES = 2.4
UNFUSED = 2.2
MEMORY_SHARE = 0.8
#: seconds of one layer, forward and backward, that no size makes smaller (launches, host)
LAYER_S = 0.00025
#: collectives against the one-way bandwidth of the data sheet; GPUs of a node without a fast link share PCIe
LINK_SHARE = 0.7
PCIE_SHARE = 0.5
PCIE_GB_S = 32.0
#: the part of each kind of communication that computation does not hide
EXPOSED_TENSOR = 0.53
EXPOSED_EXPERT = 0.42
EXPOSED_CONTEXT = 1.0
#: the part of the computation behind which gathers and reductions hide, and what shows even of the hidden part
DATA_OVERLAP = 0.9
DATA_FRICTION = 0.1
#: what every doubling of the nodes costs of the whole step: stragglers, jitter, longer collectives
SCALE_FRICTION = 0.007
#: bytes read and written per updated parameter in the optimizer step (gradient, master, two moments, weight)
OPTIMIZER_TRAFFIC = 30.0

#: bounds around a predicted step that hold four of five published runs, as factors, where the generation was fitted
INTERVAL = (0.80, 1.30)
#: and where it was not
WIDE_INTERVAL = (0.60, 1.80)
