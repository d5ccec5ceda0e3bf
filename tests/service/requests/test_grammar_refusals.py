"""A command that cannot be read is refused with the place, what was read, what is allowed, and the nearest spelling."""

import pytest

from service.engine.errors import FieldError, InvalidInput
from service.requests.grammar import parse
from service.requests.schemas import load_command


def errors_of(text: str) -> list[FieldError]:
    with pytest.raises(InvalidInput) as caught:
        load_command(text)
    return list(caught.value.errors)


@pytest.mark.parametrize(
    ("text", "pointer", "position", "given", "suggestion"),
    [
        ("70B sqe=8k", "/sqe", 4, "sqe", "seq"),
        ("70B --micro-bacth 2", "/micro-bacth", 4, "--micro-bacth", "micro_batch"),
        ("70B sqe:8k", "/command", 4, "sqe:8k", "seq"),
        ("70B batch_size=8", "/batch_size", 4, "batch_size", "micro_batch"),
        ("70B 8k", "/command", 4, "8k", "seq=8k"),
        ("70B 4090", "/command", 4, "4090", "gpu=4090"),
        ("8192 70B", "/command", 0, "8192", "seq=8192"),
        ("70B seq=8k instruct", "/command", 11, "instruct", None),
        ("70B seq=8,192", "/sequence_length", 8, "8,192", "8192"),
        ("70B seq=8q", "/sequence_length", 8, "8q", None),
        ("70B seq=1.3k", "/sequence_length", 8, "1.3k", None),
        ("70B seq=", "/sequence_length", 4, "seq=", "seq=8k"),
        ("70B seq= mb=2", "/sequence_length", 4, "seq=", "seq=8k"),
        ("70B seq", "/sequence_length", 4, "seq", "seq=8k"),
        ("70B seq=8k ctx=4k", "/sequence_length", 15, "8192 and 4096", None),
        ("70B model=8B", "/model", 10, "70B and 8B", None),
        ("70B lora qlora", "/method", 9, "lora and qlora", None),
        ("70B zero=4", "/shard", 9, "4", "zero=3"),
        ("70B 8 H100", "/command", 4, "8 H100", "8xH100"),
        ("70B gpu=H100:8,H200:4", "/gpu", 8, "H100:8,H200:4", None),
        ("70B compile=maybe", "/compile", 12, "maybe", None),
        ("70B margin=lots", "/margin", 11, "lots", None),
        ("=8k 70B", "/command", 0, "=", None),
        ('70B "llama seq=8k', "/command", 4, '"llama seq=8k', None),
        ('70B gpu={"memory_bytes": }', "/command", 25, "}", None),
        ("70B loss=fussed", "/loss", 9, "fussed", "fused"),
        ("70B opt=adam-w", "/optimizer", 8, "adam-w", "adamw"),
        ("70B seq=99999999", "/sequence_length", 8, "99999999", None),
        ("70B mb=-1", "/micro_batch", 7, "-1", None),
        ("70B tp=3 n=8", "/tp", 7, "3", "tp=2"),
        ("seq=8k", "/model", None, None, None),
    ],
)
def test_a_refusal_says_where_what_and_what_would_be_right(
    text: str, pointer: str, position: int | None, given: str | None, suggestion: str | None
) -> None:
    error = next(error for error in errors_of(text) if error.pointer == pointer)
    assert (error.position, error.given) == (position, given)
    if position is not None:
        assert error.detail.startswith(f"character {position}: ")
    if suggestion is not None:
        assert suggestion in error.suggestions


def test_everything_wrong_with_a_command_is_told_at_once() -> None:
    pointers = {error.pointer for error in errors_of("70B tp=0 mb=-1 sqe=8k attn=flahs seq=8q extra=1")}
    assert pointers == {"/tp", "/micro_batch", "/sqe", "/attention", "/sequence_length", "/extra"}


def test_a_size_that_is_no_key_of_ours_is_not_taken_for_one() -> None:
    # "gb" is a key (global batch), but behind a GPU and a number it is a size.
    assert parse("70B H100 80 gb") == {"model": "70B", "gpu": "H100 80gb"}
    assert parse("70B H100 gb=80") == {"model": "70B", "gpu": "H100", "global_batch": 80}


def test_a_bare_size_is_a_whole_name_so_that_no_word_after_it_is_swallowed() -> None:
    (error,) = errors_of("70B chat seq=8k")
    assert error.detail == "character 4: chat is not understood; the model is 70B"


def test_positions_count_characters_of_the_normalised_text() -> None:
    # NFKC makes two characters of the ligature and one of the full-width letter.
    (error,) = errors_of("ﬁ70B Ｘ=1")
    assert error.position == 6


def test_a_command_longer_than_any_request_is_refused_whole() -> None:
    (error,) = errors_of("70B " + "x" * 40_000)
    assert error.pointer == "/command"
    assert error.allowed == "text of at most 32,768 characters"


def test_combining_marks_cannot_make_reading_slow() -> None:
    # Putting n marks in order takes n² steps, so they are counted first (U+0F73 hides two of them).
    for marks in ("\u0301\u0323", "\u0f73\u0f72"):
        (error,) = errors_of("a" + marks * 10_000)
        assert "combining marks" in error.detail
