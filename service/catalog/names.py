"""How people write names: one key for all spellings of a name, and an index from keys to ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

#: words that say how a checkpoint was tuned, stored or packed, not what shape it has
PACKAGING = frozenset(
    {
        "instruct",
        "chat",
        "base",
        "it",
        "hf",
        "pt",
        "sft",
        "dpo",
        "rlhf",
        "gguf",
        "ggml",
        "awq",
        "gptq",
        "mlx",
        "exl2",
        "fp8",
        "fp16",
        "bf16",
        "int4",
        "int8",
        "4bit",
        "8bit",
        "bnb",
        "nf4",
        "unsloth",
        "dynamic",
        "thinking",
        "preview",
        "latest",
        "text",
        "meta",
    }
)
_VERSION = re.compile(r"v\d+(\.\d+)*|\d{4}|q\d\w*|k|m|s|\d{6}")
_SEPARATORS = re.compile(r"[\s_\-:]+")
MOST_LETTERS = 200


def plain(text: str) -> str:
    """Case, width and exotic spaces or dashes taken away."""
    text = text[:MOST_LETTERS]
    if text.isascii():
        return text.lower().strip()
    text = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\u2010-\u2015\u2212]", "-", text).replace("×", "x").strip()


def squashed(text: str) -> str:
    """The plain text without separators: "Llama 3.1-70B" and "llama3.1:70b" are one."""
    return _SEPARATORS.sub("", plain(text))


def without_packaging(text: str) -> Iterator[str]:
    """Ever shorter readings of a model name: without the owner, tuning and packing words, then without versions."""
    name = plain(text).rsplit("/", 1)[-1]
    yield name
    words = [word for word in _SEPARATORS.split(name) if word]
    kept = [word for word in words if word not in PACKAGING]
    yield "-".join(kept)
    yield "-".join(word for word in kept if not _VERSION.fullmatch(word))


class NameIndex:
    """Ids by spelling: an exact one first, then one without separators. A spelling of several ids is ambiguous."""

    def __init__(self, spellings: Mapping[str, Iterable[str]], key: Callable[[str], str] = squashed) -> None:
        self._key = key
        self._exact: dict[str, list[str]] = {}
        self._squashed: dict[str, list[str]] = {}
        for name, spelt in spellings.items():
            for spelling in dict.fromkeys((name, *spelt)):
                _add(self._exact, plain(spelling), name)
                _add(self._squashed, key(spelling), name)

    def find(self, text: str) -> list[str]:
        """Ids that a text may mean: one when it is clear, several when not, none when unknown."""
        exact = self._exact.get(plain(text), [])
        return exact if len(exact) == 1 else self._squashed.get(self._key(text), [])

    @property
    def spellings(self) -> Iterable[str]:
        return self._exact


def _add(index: dict[str, list[str]], key: str, name: str) -> None:
    found = index.setdefault(key, [])
    if name not in found:
        found.append(name)
