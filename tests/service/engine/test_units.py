"""Quantities: what people write means what they think it means, and GB is never GiB."""

import pytest

from service.engine.units import (
    format_binary,
    format_gb,
    format_gib,
    format_parameters,
    format_tokens,
    read_parameters,
    read_tokens,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("8192", 8192), ("8k", 8192), ("8K", 8192), ("128K", 131072), ("1M", 1048576), (" 2k ", 2048), ("1.5k", 1536)],
)
def test_k_is_1024_in_lengths(text: str, tokens: int) -> None:
    assert read_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("70B", 70_000_000_000),
        ("70b", 70_000_000_000),
        ("70bn", 70_000_000_000),
        ("70 billion", 70_000_000_000),
        ("124M", 124_000_000),
        ("0.5B", 500_000_000),
        ("7e9", 7_000_000_000),
        ("1.5T", 1_500_000_000_000),
        ("6.74B", 6_740_000_000),
        ("8k", 8_000),
    ],
)
def test_k_m_b_t_are_decimal_in_parameters_and_training_tokens(text: str, parameters: int) -> None:
    assert read_parameters(text) == parameters


@pytest.mark.parametrize(
    "text", ["", "k", "8q", "8kk", "eight", "0x10", "8 192", "1.3k", "1e999", "9" * 5000, "nan", "٨"]
)
def test_what_is_no_whole_number_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        read_tokens(text)


def test_a_minus_sign_is_read_so_that_the_range_check_can_say_so() -> None:
    assert read_tokens("-5") == -5


def test_gb_is_ten_to_the_nine_and_gib_two_to_the_thirty() -> None:
    # An H100 SXM5: 85,017,493,504 bytes as torch reports them, "79.2 GiB" in its out-of-memory message.
    assert format_gib(85_017_493_504) == "79.2 GiB"
    assert format_gb(85_017_493_504) == "85.0 GB"
    assert format_gb(1_128_874_532_864, digits=0) == "1,129 GB"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (70_553_706_496, "70.6B"),  # Llama 3.1 70B
        (124_439_808, "124M"),  # GPT-2
        (1_026_470_731_056, "1.03T"),  # Kimi K2
        (8_030_261_248, "8.03B"),  # Llama 3.1 8B
        (999_600, "1.00M"),
        (812, "812"),
    ],
)
def test_parameter_counts_are_written_as_model_names_write_them(count: int, text: str) -> None:
    assert format_parameters(count) == text


@pytest.mark.parametrize(("count", "text"), [(8192, "8k"), (8000, "8000"), (1048576, "1M"), (131072, "128k"), (0, "0")])
def test_lengths_are_written_exactly(count: int, text: str) -> None:
    assert format_tokens(count) == text
    assert read_tokens(text) == count


def test_binary_sizes_take_the_unit_that_leaves_a_figure() -> None:
    assert format_binary(1_288_490_189) == "1.2 GiB"
    assert format_binary(65_011_712) == "62.0 MiB"
    assert format_binary(1536) == "1.5 KiB"
    assert format_binary(0) == "0 B"
