"""Measured over predicted, in thousandths, per stack and level of memory: the bounds of an 80 % interval.

Made by service/accuracy/calibration.py from service/accuracy/data; do not edit. `make calibrate` makes it again.
"""

from __future__ import annotations

from service.engine.quantities import Residual

RESIDUALS: dict[str, dict[str, Residual]] = {
    "reference": {},
    "huggingface": {
        "allocated": Residual(932, 1150, 94, 5),
        "reserved": Residual(955, 1124, 21, 4),
        "device": Residual(892, 1218, 60, 2),
    },
    "torchtitan": {
        "reserved": Residual(776, 1067, 45, 2),
    },
    "megatron": {
        "allocated": Residual(966, 1030, 58, 3),
        "reserved": Residual(952, 1398, 14, 2),
    },
    "deepspeed": {
        "reserved": Residual(923, 1072, 12, 2),
        "device": Residual(966, 1165, 54, 3),
    },
}

#: over all stacks, for those with few cases
POOLED: dict[str, Residual] = {
    "allocated": Residual(935, 1070, 159, 9),
    "reserved": Residual(936, 1109, 92, 8),
    "device": Residual(942, 1206, 115, 5),
}
