"""What a change did, in one line above the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import texts
from bot.blocks import quantities
from bot.blocks.text import bold


def change_lead(change: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str]:
    """The line, and the id of the sizing before, to go back to."""
    line = texts.CHANGE.format(change=bold(change), was=side(before["per_gpu"]), now=side(after["per_gpu"]))
    return line, str(before["id"])


def side(per_gpu: Mapping[str, Any]) -> str:
    return texts.CHANGE_SIDE.format(gpus=per_gpu["gpus"], peak=quantities.gib(needed_bytes(per_gpu)))


def needed_bytes(per_gpu: Mapping[str, Any]) -> int:
    """What the run cannot do without on the fullest GPU."""
    return int(per_gpu["usable_bytes"]) - int(per_gpu["headroom_bytes"])
