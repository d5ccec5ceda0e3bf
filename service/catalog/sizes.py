"""Bare sizes: "70B" without a name. What the catalogue takes for them, and what else people may mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from service.catalog.facts import Catalog, ModelFact
from service.catalog.names import plain, squashed

_UNITS = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_SIZE = re.compile(
    r"~?(\d{1,15}(?:\.\d{1,6})?)\s*(k|m|b|t|mn|bn|tn|million|billion|trillion)(?:\s*(?:params?|parameters|model))?"
)
_MIXTURE = re.compile(r"(\d+(?:\.\d+)?)\s*b\s*[-_ ]?\s*a\s*(\d+(?:\.\d+)?)\s*b")
_SIZE_WORD = re.compile(r"(?<![a-z\d.])(\d+(?:\.\d+)?)\s?([mbt])(?![a-z])")
#: kinds of model that somebody who says only a size can mean
_TEXT_KINDS = frozenset({"decoder-lm", "vlm"})
MOST_ALTERNATIVES = 12
#: how far the active size of "671B-A37B" may be from what the model counts (heads and embeddings are often left out)
_ACTIVE_TOLERANCE = 0.15


class BareSize(NamedTuple):
    """What a size alone stands for: the model taken (None: none, or too many) and the others of that size."""

    parameters: int
    taken: ModelFact | None
    others: tuple[ModelFact, ...]


def read_size(text: str) -> int | None:
    """Parameters that "70B", "70 bn", "1.5b" or "340M" say; None for anything else."""
    found = _SIZE.fullmatch(plain(text))
    return int(Decimal(found[1]) * _UNITS[found[2][0]]) if found else None


def bare_size(catalog: Catalog, text: str) -> BareSize | None:
    """The default model of a size and the others; None when the text is no size."""
    mixture = _MIXTURE.fullmatch(plain(text))
    if mixture:
        return _mixture(catalog, squashed(text), float(mixture[1]), float(mixture[2]))
    written = _written_defaults(catalog).get(squashed(text))
    size = read_size(text)
    if size is None:
        return None if written is None else BareSize(written.total or 0, written, ())
    default = written or _defaults(catalog).get(size)
    same = [fact for fact in _by_size_word(catalog).get(size, ()) if fact.kind in _TEXT_KINDS and fact.supported]
    if default is None and len(same) == 1:
        default = same[0]
    if default is None and not same:
        return BareSize(size, *_by_count(catalog, text, size))
    others = tuple(fact for fact in same if default is None or fact.id != default.id)
    return BareSize(size, default, others[:MOST_ALTERNATIVES])


def size_words(text: str) -> set[int]:
    """Every size that a name carries: 70 billion in "llama-3.1-70b-instruct"."""
    return {int(Decimal(number) * _UNITS[unit]) for number, unit in _SIZE_WORD.findall(plain(text))}


def of_family_and_size(catalog: Catalog, text: str) -> tuple[ModelFact | None, tuple[ModelFact, ...]]:
    """ "llama 70b", "gemma 27b": the default of that size if it is of the family, else the newest; and the others."""
    sizes = size_words(text)
    family = squashed(_SIZE_WORD.sub("", plain(text)))
    if len(sizes) != 1 or not family:
        return None, ()
    size = next(iter(sizes))
    fitting = [fact for fact in _by_size_word(catalog).get(size, ()) if _is_of_family(fact, family)]
    supported = [fact for fact in fitting if fact.supported] or fitting
    if not supported:
        return None, ()
    default = _defaults(catalog).get(size)
    chosen = default if default in supported else max(supported, key=lambda fact: fact.year or 0)
    return chosen, tuple(fact for fact in supported if fact is not chosen)[:MOST_ALTERNATIVES]


def _is_of_family(fact: ModelFact, family: str) -> bool:
    names = (fact.id, fact.family, *fact.aliases)
    return any(squashed(name.rsplit("/", 1)[-1]).startswith(family) for name in names)


def _mixture(catalog: Catalog, key: str, total: float, active: float) -> BareSize:
    """ "30B-A3B": total and active size."""
    named = [
        fact for fact in catalog.models.values() if any(key in squashed(name) for name in (fact.id, *fact.aliases))
    ]
    size = round(total * 1e9)
    default = _defaults(catalog).get(size)
    known = default.active_parameters if default else None
    if not named and default and known and abs(known / (active * 1e9) - 1) <= _ACTIVE_TOLERANCE:
        named = [default]
    supported = [fact for fact in named if fact.supported] or named
    taken = supported[0] if len(supported) == 1 else None
    return BareSize(size, taken, tuple(fact for fact in supported if fact is not taken))


def _by_count(catalog: Catalog, text: str, size: int) -> tuple[ModelFact | None, tuple[ModelFact, ...]]:
    """A size written with three digits or more ("8.03B") may be a model's own count."""
    found = _SIZE.fullmatch(plain(text))
    digits = Decimal(found[1]) if found else Decimal(0)
    if len(digits.as_tuple().digits) < 3:
        return None, ()
    step = Decimal(10) ** int(digits.as_tuple().exponent) * (size / digits if digits else 1)
    near = [
        fact
        for fact in catalog.models.values()
        if fact.supported and fact.total and abs(fact.total - size) * 2 <= step and fact.kind in _TEXT_KINDS
    ]
    taken = max(near, key=lambda fact: len(fact.bare_sizes), default=None)
    return taken, tuple(fact for fact in near if fact is not taken)


@lru_cache(maxsize=4)
def _written_defaults(catalog: Catalog) -> Mapping[str, ModelFact]:
    """ "8x7b" and the other sizes that are not a number."""
    return {squashed(size): fact for fact in catalog.models.values() for size in fact.bare_sizes}


@lru_cache(maxsize=4)
def _defaults(catalog: Catalog) -> Mapping[int, ModelFact]:
    sizes = ((read_size(size), fact) for fact in catalog.models.values() for size in fact.bare_sizes)
    return {size: fact for size, fact in sizes if size is not None}


@lru_cache(maxsize=4)
def _by_size_word(catalog: Catalog) -> Mapping[int, tuple[ModelFact, ...]]:
    """Models whose names carry a size, newest first."""
    found: dict[int, list[ModelFact]] = {}
    for fact in catalog.models.values():
        for size in set().union(*(size_words(name) for name in (fact.id, fact.name, *fact.aliases))):
            # "internlm2-1_8b" carries an 8b that is no size of it: a name's size is near its count
            if not fact.total or size / 2 < fact.total < size * 2:
                found.setdefault(size, []).append(fact)
    return {size: tuple(sorted(facts, key=lambda fact: -(fact.year or 0))) for size, facts in found.items()}
