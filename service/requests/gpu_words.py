"""How people write GPUs in running text: "64xH100", "8 x a100-80g", "H100:8", "H100 80gb", "RTX 4090", "64 GPUs".

Only the looks are known here; which device a name means, the catalogue decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.requests.tokens import Token

#: A size of a model, which no GPU is ("8x7B" is a mixture of experts, not eight GPUs).
SIZE = re.compile(r"\d+(?:\.\d+)?(?:b|bn|m|t|billion|million|trillion)", re.IGNORECASE | re.ASCII)

#: First parts of device names that no model has: such a word is a GPU wherever it stands.
_DEVICES = frozenset(
    """
    h100 h200 h800 h20 gh200 a100 a800 a40 a30 a16 a10 a10g a4000 a4500 a5000 a6000 b100 b200 b300 gb200 gb300 gb10
    v100 v100s p100 t4 l4 l20 l40 l40s mi100 mi210 mi250 mi250x mi300 mi300a mi300x mi308x mi325x mi350 mi350x mi355x
    rtx3060 rtx3080 rtx3090 rtx4060 rtx4070 rtx4080 rtx4090 rtx5060 rtx5070 rtx5080 rtx5090 rtx6000 rtx8000 w7900
    gaudi2 gaudi3 trainium1 trainium2 trn1 trn2 nvl72
    """.split()  # noqa: SIM905 (a list of 60 quoted names is harder to read)
)
#: Words that a device's name starts with and that are no device alone; the next word belongs to them.
_FIRST_WORDS = frozenset(
    ("nvidia", "amd", "tesla", "geforce", "instinct", "radeon", "quadro", "rtx", "gtx", "dgx", "hgx")
)
_TAKE_ONE_MORE = _FIRST_WORDS | {"pro"}
_LATER_WORD = re.compile(
    r"(?:sxm\d?|pcie|nvl\d*|hbm\d?e?|ti|super|ada|pro|blackwell|generation|server|workstation|edition|\d{2,3}g(?:i?b)?)",
    re.IGNORECASE | re.ASCII,
)
_SIZE_UNITS = frozenset({"g", "gb", "gib"})
_TIMES = frozenset({"x", "*"})

_NUMBER = re.compile(r"\d{1,12}k?", re.IGNORECASE | re.ASCII)
_COUNT_AHEAD = re.compile(r"(\d{1,12}k?)[x*](.*)", re.IGNORECASE | re.ASCII)
_COUNT_BEHIND = re.compile(r"([^:*]+)(:|x|\*)(\d{1,12}k?)", re.IGNORECASE | re.ASCII)
_COUNT_ONLY = re.compile(r"(\d{1,12}k?)gpus?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class GpuPhrase:
    """A device and how many, as text; either may be missing. `next_at` is the token behind it."""

    name: str | None
    count: str | None
    next_at: int


def looks_like_device(word: str) -> bool:
    """Whether a word is the name of a GPU wherever it stands ("H100-80GB", "a100_sxm", "NVIDIA-L40S")."""
    first, *rest = re.split(r"[-_]", word.lower(), maxsplit=2)
    return first in _DEVICES or (first in _FIRST_WORDS and bool(rest))


def is_bare(line: Sequence[Token], at: int) -> bool:
    """Whether the token is a word that assigns nothing."""
    return at < len(line) and line[at].kind == "word" and (at + 1 == len(line) or line[at + 1].kind != "equals")


def read_gpu(line: Sequence[Token], at: int, *, expected: bool) -> GpuPhrase | None:
    """The GPU that is written from token `at` on, or None. With `expected` the first word is taken for one."""
    if expected and line[at].kind == "quoted":
        return GpuPhrase(line[at].text, None, at + 1)
    if not is_bare(line, at) and not expected:
        return None
    count, name, after = _count_ahead(line, at)
    if count is not None and name is None:
        return GpuPhrase(None, count, after) if after > at else None
    if name is None:
        name, after = line[at].text, at + 1
        name, count = _count_behind(name, expected=expected)
        if not expected and not looks_like_device(name) and not _starts_device(line, at):
            return None
    if SIZE.fullmatch(name) and not expected:
        return None
    return _later_words(line, name, count, after)


def _starts_device(line: Sequence[Token], at: int) -> bool:
    return line[at].text.lower() in _FIRST_WORDS and is_bare(line, at + 1)


def _count_ahead(line: Sequence[Token], at: int) -> tuple[str | None, str | None, int]:
    """(count, name, next token) of "64xH100", "8x H100", "8 x H100", "64 GPUs"; (None, None, at) for anything else."""
    word = line[at].text
    if match := _COUNT_ONLY.fullmatch(word):
        return match[1], None, at + 1
    if match := _COUNT_AHEAD.fullmatch(word):
        if match[2]:
            return (None, None, at) if SIZE.fullmatch(match[2]) else (match[1], match[2], at + 1)
        return (match[1], line[at + 1].text, at + 2) if is_bare(line, at + 1) else (None, None, at)
    if _NUMBER.fullmatch(word) and is_bare(line, at + 1):
        following = line[at + 1].text.lower()
        if following in ("gpu", "gpus"):
            return word, None, at + 2
        if following in _TIMES and is_bare(line, at + 2):
            return word, line[at + 2].text, at + 3
    return None, None, at


def _count_behind(word: str, *, expected: bool) -> tuple[str, str | None]:
    """ "H100:8" and "H100x8" as name and count. An x must follow a device ("rtx4090" has no count)."""
    match = _COUNT_BEHIND.fullmatch(word)
    if match and (looks_like_device(match[1]) or (expected and match[2] == ":")):
        return match[1], match[3]
    return word, None


def _later_words(line: Sequence[Token], name: str, count: str | None, at: int) -> GpuPhrase:
    """Words behind a device that belong to it: its form and memory size ("SXM 80 GB"), then a count ("x8")."""
    last = name
    while is_bare(line, at):
        word = line[at].text
        if _NUMBER.fullmatch(word) and is_bare(line, at + 1) and line[at + 1].text.lower() in _SIZE_UNITS:
            name, last, at = f"{name} {word}{line[at + 1].text}", word, at + 2
            continue
        bare, behind = word, None
        if match := _COUNT_BEHIND.fullmatch(word):
            bare, behind = match[1], match[3]
        if not (last.lower() in _TAKE_ONE_MORE or _LATER_WORD.fullmatch(bare)):
            break
        name, last, count, at = f"{name} {bare}", bare, behind or count, at + 1
    if count is None and is_bare(line, at):
        word = line[at].text.lower()
        if word in _TIMES and is_bare(line, at + 1) and _NUMBER.fullmatch(line[at + 1].text):
            return GpuPhrase(name, line[at + 1].text, at + 2)
        if word[:1] in _TIMES and _NUMBER.fullmatch(word[1:]):
            return GpuPhrase(name, word[1:], at + 1)
    return GpuPhrase(name, count, at)
