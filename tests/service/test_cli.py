"""The `trainmem` command as a shell runs it: what it prints where, and how it exits."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version

import pytest

from service import cli


def run(*words: str, stdin: str = "", module: Sequence[str] = ("-m", "service")) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    command = [sys.executable, *module, *words]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=60, check=False
    )


def test_a_run_that_fits_prints_a_page_and_exits_with_0() -> None:
    done = run("size", "8B", "seq=2k", "tp=8", "gpu=H100")
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("8 × ") and "H100" in first
    assert second == "Llama 3.1 8B (8.03B parameters) · 2,048 tokens × micro-batch 1"


def test_a_run_that_does_not_fit_exits_with_1() -> None:
    done = run("size", "70B seq=8k tp=1 gpu=H100")
    assert (done.returncode, done.stderr) == (1, "")
    assert "too much" in done.stdout


def test_a_refused_request_exits_with_2_and_says_why_on_standard_error() -> None:
    done = run("size", "70B", "sqe=8k", "gpu=H1000")
    assert (done.returncode, done.stdout) == (2, "")
    assert "  70B sqe=8k gpu=H1000\n      ^^^\n  sqe is not a key. Did you mean seq?\n" in done.stderr


def test_json_is_the_sizing_and_a_refusal_the_problem_document() -> None:
    sizing = json.loads(run("size", "--json", "8B seq=2k tp=8").stdout)
    assert sizing["model"]["parameters"] == 8_030_261_248  # Llama 3.1 8B as published
    assert sizing["request"] == {"command": "8B seq=2k tp=8"}
    refused = run("size", "70B", "gpu=H1000", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["errors"][0]["pointer"] == "/gpu"


def test_flags_are_the_keys_with_hyphens() -> None:
    done = run("size", "--json", "8B", "--sequence-length", "2k", "--micro-batch=2", "--tp", "8", "--compile")
    inputs = json.loads(done.stdout)["inputs"]
    assert {name: inputs[name]["value"] for name in ("sequence_length", "micro_batch", "tp", "compile")} == {
        "sequence_length": 2048, "micro_batch": 2, "tp": 8, "compile": True,
    }  # fmt: skip


def test_a_batch_answers_lines_of_standard_input_and_exits_with_0() -> None:
    lines = ['{"model": "8B", "tp": 8, "sequence_length": 2048}', '{"model": "8B", "tp": "8"}']
    done = run("size", "--batch", "-", stdin="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    sizing, refused = (json.loads(line) for line in done.stdout.splitlines())
    assert sizing["per_gpu"]["gpus"] == 8
    assert refused["error"]["errors"][0]["suggestions"] == ["8"]


def test_a_batch_answers_each_line_before_it_needs_the_next() -> None:
    command = [sys.executable, "-m", "service", "size", "--batch", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for tp in (8, 4):
            process.stdin.write(json.dumps({"model": "8B", "tp": tp, "sequence_length": 2048}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["per_gpu"]["gpus"] == tp
        process.stdin.close()
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    "words", [("size",), ("size", "--batch", "/no/such/file"), ("sizes",), ("size", "8B", "--batch", "-")]
)
def test_misuse_exits_with_2_because_1_is_an_answer(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: ")


def test_sizing_in_a_terminal_loads_neither_web_framework_nor_database() -> None:
    program = (
        "import sys; from service.cli import main; sys.argv = ['trainmem', 'size', '8B seq=2k tp=8']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'flask', 'sqlalchemy', 'alembic', 'gunicorn', 'slack_bolt', 'httpx'} & set(sys.modules)))"
    )
    done = run(module=("-c", program))
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_catalogue_can_be_searched() -> None:
    assert "h200-sxm-141gb" in run("gpus", "h200").stdout
    assert "llama-3.1-405b" in run("models", "llama", "405b").stdout
    assert run("gpus", "no-such-gpu").returncode == 1


def test_help_shows_examples_and_every_key() -> None:
    text = run("size", "--help").stdout
    assert "trainmem size 70B seq=8k mb=2 gpu=H100" in text
    assert "sequence_length, seq, s, ctx" in text
    assert "offload_fraction" in text


def test_the_installed_command_has_a_version() -> None:
    assert run("--version").stdout == f"trainmem {version('trainmem')}\n"


def test_a_terminal_without_unicode_gets_question_marks_and_no_traceback() -> None:
    command = [sys.executable, "-m", "service", "size", "8B seq=2k tp=8"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"8 ? ")


def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    program = f"{sys.executable} -m service models | head -1"
    done = subprocess.run(
        ["sh", "-c", program], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )
    assert done.stdout.startswith("id ")
    assert done.stderr == ""


def test_a_defect_of_ours_is_no_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(request: object, catalog: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("service.sizings.answer.answer", broken)
    monkeypatch.setattr(sys, "argv", ["trainmem", "size", "8B"])
    with pytest.raises(SystemExit) as exit_status:
        cli.main()
    assert exit_status.value.code == 70
    assert "this is a defect of ours (ZeroDivisionError)" in capsys.readouterr().err
