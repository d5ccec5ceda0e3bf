"""A refused command is shown with a caret under the word, what is allowed, and what was probably meant."""

import io

import pytest

from service.engine.errors import FieldError, InvalidInput
from service.requests.schemas import load_command
from service.terminal.console import console
from service.terminal.refusal import write_refusal


def shown(text: str, errors: list[FieldError] | None = None) -> str:
    stream = io.StringIO()
    if errors is None:
        with pytest.raises(InvalidInput) as caught:
            load_command(text)
        write_refusal(text, caught.value, console(stream))
    else:
        write_refusal(text, InvalidInput(errors), console(stream))
    return stream.getvalue()


def test_every_error_stands_under_its_word() -> None:
    assert shown("70B sqe=8k mb=0") == (
        "This cannot be answered as it was asked.\n"
        "\n"
        "  70B sqe=8k mb=0\n"
        "      ^^^\n"
        "  sqe is not a key. Did you mean seq?\n"
        "\n"
        "  70B sqe=8k mb=0\n"
        "                ^\n"
        "  micro_batch is out of range.\n"
        "  Allowed: a whole number from 1 to 65,536 or auto\n"
    )


def test_an_error_of_the_catalogue_stands_under_the_name_too() -> None:
    error = FieldError("/gpu", "H1000 is not a GPU of the catalogue", "H1000", None, ("H100", "H200"))
    assert shown("70B gpu=H1000 mb=2", [error]) == (
        "This cannot be answered as it was asked.\n"
        "\n"
        "  70B gpu=H1000 mb=2\n"
        "          ^^^^^\n"
        "  H1000 is not a GPU of the catalogue. Did you mean H100, H200?\n"
    )


def test_a_key_that_resembles_none_is_answered_with_where_to_look() -> None:
    assert "xyzzyx is not a key.\n  trainmem size --help lists every key\n" in shown("70B xyzzyx=1")


def test_an_error_without_a_place_is_told_without_a_caret() -> None:
    text = shown("seq=8k")
    assert "^" not in text
    assert "model is missing." in text


def test_a_long_command_is_cut_around_the_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = shown("70B " + "kernels=rope " * 30 + "sqe=8k " + "kernels=rope " * 30).splitlines()
    line, caret = lines[2], lines[3]
    assert len(line) == 60
    assert line.startswith("  …") and line.endswith("…")
    assert line[caret.index("^") : caret.rindex("^") + 1] == "sqe"


def test_positions_hold_for_what_phones_make_of_a_text() -> None:
    lines = shown("“llama 3 70b” ｓｑｅ＝8k").splitlines()
    assert lines[2] == '  "llama 3 70b" sqe=8k'
    assert lines[3] == "                ^^^"
