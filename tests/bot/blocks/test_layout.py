"""Layouts and changes in words that can be typed again."""

from __future__ import annotations

from typing import Any

import pytest

from bot.blocks.layout import change_words, layout_words


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"tp": 8, "dp": 4, "shard": "parameters", "recompute": "full"}, "tp 8 · dp 4 · ZeRO-3 · full recompute"),
        ({"tp": 1, "pp": 1, "dp": 1, "shard": "none", "recompute": "none"}, "no recompute"),
        (
            {"pp": 4, "vpp": 2, "dp": 8, "shard": "optimizer", "recompute": "selective"},
            "pp 4 · vpp 2 · dp 8 · ZeRO-1 · selective recompute",
        ),
        (
            {"dp": 16, "shard": "parameters", "shard_degree": 8, "recompute": {"full_layers": 20}},
            "dp 16 · ZeRO-3 within 8 · full recompute of 20 layers",
        ),
        (
            {"dp": 2, "shard": "none", "recompute": None, "gradient_accumulation": 4},
            "dp 2 · DDP · no recompute · 4 micro-batches a step",
        ),
    ],
)
def test_degrees_of_one_are_left_out(layout: dict[str, Any], words: str) -> None:
    assert layout_words(layout) == words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"micro_batch": 1}, "mb=1"),
        ({"sequence_length": 4096, "recompute": {"full_layers": 20}}, "seq=4096 ckpt=full:20"),
        ({"offload": ["optimizer", "parameters"], "sp": True}, "offload=optimizer,parameters sp=true"),
    ],
)
def test_a_change_reads_as_words_of_the_command(change: dict[str, Any], words: str) -> None:
    assert change_words(change) == words
