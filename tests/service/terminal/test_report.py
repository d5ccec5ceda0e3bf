"""A sizing on a page: the written-out pages in data/ were checked against their sizings by hand, figure by figure."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.terminal.bar import memory_bar
from service.terminal.console import console
from service.terminal.report import write_sizing

DATA = Path(__file__).parent / "data"
GIB = 2**30
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def sizing(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def page(name: str) -> str:
    stream = io.StringIO()
    write_sizing(sizing(name), console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("name", ["tight", "does-not-fit"])
def test_a_sizing_reads_as_it_was_written_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert page(name) == (DATA / f"{name}.txt").read_text(encoding="utf-8")


def test_the_verdict_is_the_first_line() -> None:
    assert page("tight").splitlines()[0] == sizing("tight")["verdict"]["text"]


@pytest.mark.parametrize("columns", [60, 80, 96, 100, 250])
@pytest.mark.parametrize("name", ["tight", "does-not-fit"])
def test_no_line_is_wider_than_the_terminal_or_a_hundred_columns(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(len(line) for line in page(name).splitlines()) <= min(columns, 100)


def test_a_narrow_terminal_gets_the_reasons_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "\nmaster weights     updates would round away in bf16\n" in page("tight")


def test_a_pipe_gets_plain_text_without_bars_or_trailing_spaces() -> None:
    text = page("tight")
    assert "\x1b" not in text
    assert "█" not in text
    assert all(line == line.rstrip() for line in text.split("\n"))


def test_a_terminal_gets_colour_and_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = page("tight")
    assert "\x1b[1;33m16 × H100" in text  # yellow: it fits, but not surely
    assert "█" * 20 in ESCAPES.sub("", text)


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", page("tight")) for code in found.split(";")}
    assert not codes & {str(code) for code in (*range(30, 50), *range(90, 108))}


def test_a_term_that_this_run_does_not_have_is_left_out() -> None:
    assert "master weights" not in page("does-not-fit")  # adapters: no masters anywhere
    assert "master weights" in page("tight")


def test_the_bar_is_to_scale() -> None:
    # 80 GiB in 40 columns: 8 + 8 + 16 + 32 + 2 + 1 + 5 GiB fill 36 of them, 76 GiB usable end at the 38th.
    bar = memory_bar(sizing("tight")["per_gpu"], 80 * GIB, width=40)
    assert bar.plain == "█" * 36 + "░░│░"
    lengths = {str(span.style): span.end - span.start for span in bar.spans}
    assert (lengths["blue"], lengths["cyan"], lengths["magenta"], lengths["yellow"]) == (4, 4, 8, 16)


def test_a_bar_that_overflows_shows_how_far() -> None:
    # 32 GiB on a card of 20 GiB with 19 GiB usable, in 64 columns of half a GiB.
    bar = memory_bar(sizing("does-not-fit")["per_gpu"], 20 * GIB, width=64)
    assert bar.plain == "█" * 38 + "│" + "█" * 25


def test_gpus_are_compared_by_the_goal_those_that_hold_the_run_first() -> None:
    wide = sizing("does-not-fit")
    row = wide["comparison"][0]
    wide["comparison"] = [
        {**row, "gpu": "never", "gpus": 1, "fits": False},
        {**row, "gpu": "dear", "gpus": 1, "cost": {"usd": "9000", "price_date": "2026-09"}},
        {**row, "gpu": "cheap", "gpus": 8, "cost": {"usd": "100", "price_date": "2026-09"}},
        *({**row, "gpu": f"other {number}", "gpus": 16, "cost": None} for number in range(20)),
    ]
    for goal, order in (("gpus", ["dear", "cheap", "other 0"]), ("cost", ["cheap", "dear", "other 0"])):
        wide["inputs"]["goal"] = {"value": goal, "from": "request"}
        stream = io.StringIO()
        write_sizing(wide, console(stream))
        compared = stream.getvalue().split("Compared\n")[1].splitlines()[2:]
        assert [line[:9].strip() for line in compared if line[:1].strip()][:3] == order
        assert "and 7 more (--json lists them)" in compared
