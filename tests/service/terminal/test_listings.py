"""The catalogue in lines."""

import io

from service.catalog.facts import packaged
from service.terminal.console import console
from service.terminal.listings import write_gpus, write_models


def test_models_are_found_by_all_words_of_any_of_their_names() -> None:
    stream = io.StringIO()
    assert write_models(packaged(), "LLAMA 3.1 405b", console(stream)) == 1
    line = stream.getvalue().splitlines()[2]
    assert line.split()[:3] == ["llama-3.1-405b", "406B", "128k"]  # 405.85 billion parameters, 131,072 positions


def test_gpus_show_the_memory_that_an_allocator_sees() -> None:
    stream = io.StringIO()
    assert write_gpus(packaged(), "h200-sxm", console(stream)) == 1
    assert "139.8" in stream.getvalue()  # torch on an H200 SXM 141 GB reports 139.8 GiB
    assert stream.getvalue().endswith("1 GPU\n")


def test_nothing_found_is_said() -> None:
    stream = io.StringIO()
    assert write_gpus(packaged(), "zzz", console(stream)) == 0
    assert stream.getvalue() == "No GPU has 'zzz' in its names.\n"
