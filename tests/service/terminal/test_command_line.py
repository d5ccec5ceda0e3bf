"""What the shell split is put together again as its writer meant it."""

import pytest

from service.requests.grammar import parse
from service.terminal.command_line import command_text


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["70B seq=8k mb=2"], {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
        (["70B", "seq=8k", "mb=2"], {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
        (["--micro-batch", "2", "70B", "--compile"], {"micro_batch": 2, "model": "70B", "compile": True}),
        (["70B", "--gpu", "RTX PRO 6000", "--gpus=8"], {"model": "70B", "gpu": "RTX PRO 6000", "gpus": 8}),
        (["--model=llama 3 8b", "--gpu=My Own GPU"], {"model": "llama 3 8b", "gpu": "My Own GPU"}),
        (["70B", "--gpu", "H100, H200"], {"model": "70B", "gpu": ["H100", "H200"]}),
        (["--model", '{"parameters": 7e9}'], {"model": {"parameters": 7e9}}),
        (["70B", "--compile", "gpu=H100"], {"model": "70B", "compile": True, "gpu": "H100"}),
        (["70B", "--sp", "false"], {"model": "70B", "sp": False}),
        (["llama", "3", "70b", "8", "x", "a100-80g"], {"model": "llama 3 70b", "gpu": "a100-80g", "gpus": 8}),
    ],
)
def test_words_of_a_shell_mean_one_command(words: list[str], meant: dict[str, object]) -> None:
    assert parse(command_text(words)) == meant
