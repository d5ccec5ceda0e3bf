"""Whatever is sent: the grammar raises nothing but its own error, reads what it writes, and takes linear time."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.errors import InvalidInput
from service.requests.grammar import parse, read_command
from service.requests.keys import KEYS
from service.requests.rendering import render
from service.requests.schemas import load_command, load_request, load_text_request
from service.requests.vocabulary import AUTO, Key

FRAGMENTS = st.sampled_from(
    [
        "70B", "llama", "3", "x", "8x", "8xH100", "H100:8", "80gb", "GB", "seq", "mb", "=", ":", ",", "-", "--", "tp4",
        "lora", "zero", "{", "}", "[", "]", '"', "'", "`", '{"a":1}', "8k", "1e9", "-1", "auto", "none", "RTX", "4090",
        "—micro-batch", "“", "”", "\u00a0", "８", "×", "\u0301", "\ud800", "\x00", "gpu", "gpus", "model", "true", "%",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.one_of(FRAGMENTS, st.just(" ")), max_size=25).map("".join))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_a_command_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        load_command(text)
    except InvalidInput as refused:
        assert all(error.pointer.startswith("/") and error.detail for error in refused.errors)
        length = len(read_command(text).text)
        assert all(error.position is None or 0 <= error.position <= length for error in refused.errors)


@given(st.dictionaries(st.sampled_from([*KEYS, "seq", "zero", "oops"]), JSON, max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_json_request_is_read_or_refused_and_nothing_else(asked: dict[str, Any]) -> None:
    try:
        load_request(asked)
    except InvalidInput as refused:
        assert refused.errors


@given(st.dictionaries(st.sampled_from([*KEYS, "seq", "lora", "zero", "oops"]), TEXTS, max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_text_request_is_read_or_refused_and_nothing_else(asked: dict[str, str]) -> None:
    try:
        load_text_request(asked)
    except InvalidInput as refused:
        assert refused.errors


def _values(key: Key) -> st.SearchStrategy[Any]:
    names = st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip()) and text.isprintable())
    objects = st.dictionaries(
        st.text(max_size=8), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    )
    match key.kind:
        case "integer":
            numbers: st.SearchStrategy[Any] = st.integers(int(key.minimum), int(key.maximum))
            return numbers | st.just(AUTO) if key.auto else numbers
        case "number":
            return st.floats(key.minimum, key.maximum)
        case "boolean":
            return st.booleans()
        case "choice":
            choices: st.SearchStrategy[Any] = st.sampled_from([*key.choices, *([AUTO] if key.auto else [])])
            layers = st.integers(0, int(key.maximum)).map(lambda layers: {"full_layers": layers})
            return choices | layers if key.name == "recompute" else choices
        case "words":
            words: st.SearchStrategy[Any] = st.lists(st.sampled_from(key.choices), min_size=key.fewest, unique=True)
            return words | st.sampled_from(key.whole) if key.whole else words
        case "integers":
            most = min(key.most, 6)
            return st.lists(st.integers(int(key.minimum), int(key.maximum)), min_size=key.fewest, max_size=most)
        case "model":
            return names | objects
        case _:
            return names | objects | st.lists(names | objects, min_size=1, max_size=3)


REQUESTS = st.fixed_dictionaries({}, optional={key.name: _values(key) for key in KEYS.values() if key.kind != "text"})


@given(REQUESTS)
@settings(max_examples=300, deadline=None)
def test_what_is_written_is_read_back(asked: dict[str, Any]) -> None:
    assert parse(render(asked)) == asked


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"}, "70B seq=8k mb=2 gpu=H100"),
        ({"gpus": 64, "gpu": "H100", "model": "llama 3 70b"}, "llama 3 70b 64xH100"),
        ({"model": "70B", "method": "lora", "lora_rank": 16, "compile": True}, "70B lora=16 compile=true"),
        ({"model": "70B", "tokens": 15 * 10**12, "recompute": {"full_layers": 20}}, "70B ckpt=full:20 tokens=15T"),
        ({"model": "tp4", "gpu": "my gpu", "offload": []}, 'model=tp4 gpu="my gpu" offload=none'),
        ({"model": "70B", "gpus": None}, "70B"),
    ],
)
def test_a_request_is_written_as_people_type_it(asked: dict[str, Any], text: str) -> None:
    assert render(asked) == text


HOSTILE = [
    "(", '"', "'", "{", "[", "=", ":", ",", "-", "x", "8", "8 ", "8x", "8x ", "8 x ", "s:", "s=", "a=", "a:", "tp4 ",
    "H100 ", "80gb ", "H100 80gb ", "rtx ", "gpu=", "gpu=H100,", "gpu=H100, ", "targets=q_proj, ", "llama ", "8k ",
    "--a ", "--mb ", '{"a":1} ', '{"a":', '"" ', "lora ", "zero ", "seq 8k ", "seq=8k,", "stage_layers=1, ", "\u00a0",
    "—", "８", "ﷺ ", "gpus ", "8 gpus ", "8 H100 ", "seq= ", "1,000,", "kernels=-", "%", "max ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_reading_takes_steps_in_proportion_to_the_text(piece: str) -> None:
    times = 400 // len(piece)
    once, twice, four_times = (
        _lines_run(lambda text=piece * (times * factor): read_command(text))
        for factor in (1, 2, 4)  # type: ignore[misc]
    )
    # Twice the text may take at most twice the lines, and something for the start; a square law would take 4 and 16.
    assert twice <= 2.2 * once + 200
    assert four_times <= 4.4 * once + 400


def _lines_run(work: Callable[[], Any]) -> int:
    """How many lines of Python a call runs: a measure of work that no other process disturbs."""
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
