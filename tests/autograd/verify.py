"""Compare what real torch and transformers keep (measuring.py) with the engine's rows, storage by storage.

    python tests/autograd/verify.py MEASURED.jsonl

Prints a line a run and what differs; exit status 1 when anything does.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from service.catalog.hf_config import read
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Recompute, Run
from service.engine.size import activation_bundles
from service.engine.stacks import STACKS, RecipeRequest, recipe
from service.engine.stage import Prepared, view

sys.path.insert(0, str(Path(__file__).parent))
from models import MODELS

BATCH, SEQUENCE = 2, 64
CARD = Gpu(id="any", name="any", vendor="NVIDIA", memory_bytes=1 << 45)


def engine_rows(config: dict[str, Any], dtype: str, *, checkpointed: bool) -> Counter[tuple[str, int]]:
    """(dtype, bytes) of every saved tensor, as often as it is saved."""
    stack = STACKS["huggingface"]
    prepared = Prepared(
        architecture=read(config).architecture,
        recipe=recipe(stack, RecipeRequest(precision=dtype), sharded=False),
        layout=Layout(),
        run=Run(
            sequence_length=SEQUENCE,
            micro_batch=BATCH,
            attention="eager",
            recompute=Recompute(kind="full" if checkpointed else "none"),
        ),
        stack=stack,
        gpu=CARD,
    )
    found: Counter[tuple[str, int]] = Counter()
    for bundle in activation_bundles(prepared, view(prepared, 0)):
        copies = int(bundle.alive[0])
        for row in bundle.rows:
            times = next((int(dim.size) for dim in row.shape if dim.symbol.isdigit() and dim is row.shape[-1]), 1)
            size = int(row.bytes)
            # alike tensors share a row, whose last dimension then counts them
            found[(row.dtype, size // times)] += copies * times
    return found


def differences(measured: Counter[tuple[str, int]], told: Counter[tuple[str, int]]) -> list[str]:
    """What only one of the two has, largest first."""
    lines = []
    for key in sorted({*measured, *told}, key=lambda pair: -pair[1]):
        if measured[key] != told[key]:
            lines.append(f"    {key[1]:>12,} B {key[0]:<6} torch keeps {measured[key]}, the engine says {told[key]}")
    return lines


def main() -> int:
    wrong = 0
    for line in Path(sys.argv[1]).read_text().splitlines():
        run = json.loads(line)
        measured = Counter((dtype, size) for _, dtype, size in run["rows"])
        told = engine_rows(MODELS[run["model"]], run["dtype"], checkpointed=run["checkpointed"])
        lines = differences(measured, told)
        wrong += bool(lines)
        how = "checkpointed" if run["checkpointed"] else "plain"
        verdict = "differs" if lines else f"agrees in {sum(measured.values())} tensors"
        sys.stdout.write(f"{run['model']}, {run['dtype']}, {how}: {verdict}\n")
        sys.stdout.writelines(text + "\n" for text in lines)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
