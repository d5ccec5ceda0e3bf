"""`trainmem explain`: every tensor behind an answer, and sums that are the answer's own."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from service.cli import cli

RUN = "llama-3.1-8b seq=4k gpus=1 dp=1 precision=bf16 gpu=H100"


def explained(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", RUN, *arguments])


def test_a_tensor_shows_its_formula_sizes_and_source() -> None:
    """4,096 tokens × MLP width 14,336 × 2 bytes × 32 layers are 3.5 GiB."""
    shown = explained("--term", "activations").output
    assert "b·s × f × 2 B = 4096 × 14336 × 2 B × 32" in shown
    assert "up  3.5 GiB" in shown
    assert "arXiv:2002.05202" in shown


def test_rows_of_a_term_sum_to_what_the_answer_says() -> None:
    rows = json.loads(explained("--moment", "loss", "--json").output)
    sizing = json.loads(CliRunner().invoke(cli, ["size", RUN, "--json"]).output)
    at_loss = next(moment for moment in sizing["per_gpu"]["moments"] if moment["moment"] == "loss")
    for term, size in at_loss["terms"].items():
        assert sum(row["total_bytes"] for row in rows if row["term"] == term) == size, term


@pytest.mark.parametrize(
    ("option", "word", "meant"), [("--term", "activation", "activations"), ("--moment", "los", "loss")]
)
def test_a_wrong_word_is_refused_with_the_nearest(option: str, word: str, meant: str) -> None:
    refused = explained(option, word)
    assert refused.exit_code == 2
    assert f"Did you mean {meant}?" in refused.output
