"""What was not asked and had to be taken from somewhere, by where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.engine.units import format_tokens
from service.requests.keys import FURTHER_KEYS, KEYS
from service.terminal.wording import recompute_text

#: In this order, and in these words.
SOURCES = {
    "default": "by default",
    "model": "from the model",
    "gpu": "from the GPU",
    "stack": "from the stack",
    "derived": "derived",
    "solved": "solved for",
}
#: The layout is told by itself; `gpus` and `micro_batch` stand in the verdict.
TOLD_ELSEWHERE = frozenset({"tp", "sp", "pp", "vpp", "cp", "ep", "etp", "dp", "shard", "shard_degree", "recompute"})


def assumptions(inputs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line for each source: the inputs that were taken from it. Further keys that are off are left out."""
    by_source: dict[str, list[str]] = {}
    quiet = 0
    for name in (*KEYS, *(name for name in inputs if name not in KEYS)):
        entry = inputs.get(name)
        if entry is None or entry["from"] == "request" or entry["value"] is None:
            continue
        if entry["from"] == "derived" and name in TOLD_ELSEWHERE:
            continue
        if name in FURTHER_KEYS and entry["from"] in ("default", "derived") and is_off(name, entry["value"]):
            quiet += 1
            continue
        by_source.setdefault(entry["from"], []).append(f"{name}={value_text(name, entry['value'])}")
    lines = [f"{words}: {', '.join(by_source[source])}" for source, words in SOURCES.items() if source in by_source]
    lines += [f"{source}: {', '.join(words)}" for source, words in by_source.items() if source not in SOURCES]
    return [*lines, f"{quiet} further keys at their defaults (--json lists them)"] if quiet else lines


def is_off(name: str, value: Any) -> bool:
    """Whether a further key changes nothing: false, zero, empty, or the value that its row names as default."""
    return not value or value == [0, 0] or str(value) == KEYS[name].default


def value_text(name: str, value: Any) -> str:
    """A value as it would be typed in a command."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value) if value else "none"
    if isinstance(value, Mapping):
        return recompute_text(value) if "full_layers" in value else "{…}"
    if name == "sequence_length" and isinstance(value, int):
        return format_tokens(value)
    return str(value)
