"""GPU names → the device: spellings, bare names, devices of one's own, memory from a label."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from service.catalog.bounds import shown
from service.catalog.custom_gpu import CUSTOM_NOTE, custom_gpu
from service.catalog.facts import Catalog, GpuFact
from service.catalog.names import NameIndex, plain
from service.engine.errors import FieldError, InvalidInput, nearest
from service.engine.hardware import Gpu

MOST_GPUS_COMPARED = 16

#: a bare name that several devices carry → what it is taken for, and why that one
BARE: Mapping[str, tuple[str, str]] = {
    "a100": ("a100-sxm4-40gb", "the smaller memory is the safe reading"),
    "a100sxm": ("a100-sxm4-40gb", "the smaller memory is the safe reading"),
    "v100": ("v100-sxm2-16gb", "the smaller memory is the safe reading"),
    "mi300": ("mi300x", "most installations have the X"),
}
#: bare names with no usual meaning
UNDECIDED: Mapping[str, tuple[str, ...]] = {
    "rtx6000": ("rtx-pro-6000-blackwell", "rtx-6000-ada", "quadro-rtx-6000"),
    "6000": ("rtx-pro-6000-blackwell", "rtx-6000-ada", "rtx-a6000", "quadro-rtx-6000"),
}
_VENDOR_WORDS = re.compile(r"\b(nvidia|geforce|tesla|amd|instinct|gpu|accelerator)\b")
_MEMORY = re.compile(r"(?<![a-z\d])(\d+)\s?g(?:i?b)?(?![a-z])")
_INSTANCE = re.compile(r"([a-z]\d\w*)\.(\d+x?large|\d*xlarge|metal.*)")
_CONSUMER = re.compile(r"geforce|rtx|titan|quadro|radeon|gb10")


@dataclass(frozen=True, slots=True)
class ResolvedGpu:
    """The device, other ids that the name might have meant, and warnings as (code, message)."""

    gpu: Gpu
    alternatives: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()


def resolve_gpu(catalog: Catalog, spec: Any, pointer: str = "/gpu") -> ResolvedGpu:
    """One device by id, alias, driver name or usual spelling, or one described by its memory.

    Raises InvalidInput: unknown name (with the nearest ones), a name with no usual meaning, an impossible object.
    """
    if isinstance(spec, Mapping):
        return ResolvedGpu(custom_gpu(spec, pointer), (), (("custom_gpu", CUSTOM_NOTE),))
    if not isinstance(spec, str):
        raise InvalidInput(
            [FieldError(pointer, "gpu is not a name", shown(spec), "a name like H100, or an object with memory_bytes")]
        )
    fact, alternatives, reason = _named(catalog, spec, pointer)
    warnings = []
    if reason:
        others = ", ".join(alternatives)
        warnings.append(("ambiguous_gpu", f"{spec} was taken as {fact.id} ({reason}); it could also mean {others}"))
    gpu, more = device(fact)
    return ResolvedGpu(gpu, alternatives, (*warnings, *more))


def resolve_gpus(catalog: Catalog, spec: Any, pointer: str = "/gpu") -> list[ResolvedGpu]:
    """One device, a list of at most 16 to compare, or "any": NVIDIA and AMD data-centre devices with a known total."""
    if isinstance(spec, str) and plain(spec) == "any":
        return [ResolvedGpu(device(fact)[0]) for fact in catalog.gpus.values() if _is_data_centre(fact)]
    if not isinstance(spec, list | tuple):
        return [resolve_gpu(catalog, spec, pointer)]
    if not 1 <= len(spec) <= MOST_GPUS_COMPARED:
        detail = "the list of GPUs is empty" if not spec else f"{len(spec)} GPUs are too many to compare at once"
        allowed = f"1 to {MOST_GPUS_COMPARED} GPUs, or any"
        raise InvalidInput([FieldError(pointer, detail, str(len(spec)), allowed)])
    found: dict[tuple[str, int], ResolvedGpu] = {}
    errors: list[FieldError] = []
    for index, entry in enumerate(spec):
        try:
            resolved = resolve_gpu(catalog, entry, f"{pointer}/{index}")
            found.setdefault((resolved.gpu.id, resolved.gpu.memory_bytes), resolved)
        except InvalidInput as refused:
            errors.extend(refused.errors)
    if errors:
        raise InvalidInput(errors)
    return list(found.values())


def device(fact: GpuFact) -> tuple[Gpu, tuple[tuple[str, str], ...]]:
    """The engine's view of a fact, and what has to be said about it."""
    warnings: list[tuple[str, str]] = []
    memory = fact.memory_bytes
    if memory is None:
        memory = memory_from_label(fact)
        warnings.append(
            (
                "gpu_memory_estimated",
                f"{fact.name}: how much memory an allocator sees was never reported; {memory:,} bytes are estimated "
                f"from the {fact.label_gb} GB label",
            )
        )
    gpu = Gpu(
        id=fact.id,
        name=fact.name,
        vendor=fact.vendor,
        memory_bytes=memory,
        gpus_per_node=fact.gpus_per_node,
        scale_up_domain=max(fact.scale_up_domain, 1),
        architecture=fact.architecture,
        compute_capability=fact.compute_capability,
        dense_tflops=fact.dense_tflops,
        memory_gb_s=fact.row.get("memory_bandwidth_gb_s"),
        interconnect_gb_s=fact.interconnect_gb_s,
        price_usd_per_hour=fact.price_usd_per_hour,
        price_date=fact.price_date,
        memory_estimated=fact.memory_bytes is None,
    )
    if not gpu.runtime_modelled:
        warnings.append(
            (
                "gpu_runtime_not_modelled",
                f"context, communicators and allocator of {fact.vendor} devices are not modelled: treat the answer "
                "as a sketch",
            )
        )
    return gpu, tuple(warnings)


def memory_from_label(fact: GpuFact) -> int:
    """What an allocator sees of a label: 0.99 GiB a labelled GB on HBM, 0.98 on GeForce, 0.92 where ECC is carved out.

    Shares seen between labels and reported totals; docs/catalogue.md lists them.
    """
    memory_type = fact.memory_type or ""
    consumer = re.search(r"geforce|titan|radeon rx", fact.name.casefold())
    if memory_type.startswith("HBM"):
        share = 0.99
    elif consumer or memory_type in ("GDDR6X", "GDDR7"):
        share = 0.98
    else:
        share = 0.92
    return round((fact.label_gb or 0) * share * 2**30)


def gpu_key(text: str) -> str:
    """One key for the spellings of a device: vendor words dropped, "80g" and "80 GB" alike, separators gone."""
    name = _VENDOR_WORDS.sub("", re.sub(r"[_\-:,()/]+", " ", plain(text)))
    return "".join(_MEMORY.sub(r"\1gb", name).split())


@lru_cache(maxsize=4)
def _index(catalog: Catalog) -> NameIndex:
    facts = catalog.gpus.values()
    spellings = {fact.id: (fact.name, *fact.aliases, *fact.driver_names) for fact in facts}
    return NameIndex(spellings, gpu_key)


@lru_cache(maxsize=4)
def _word_sets(catalog: Catalog) -> Mapping[frozenset[str], tuple[str, ...]]:
    found: dict[frozenset[str], list[str]] = {}
    for fact in catalog.gpus.values():
        for spelling in (fact.id, fact.name, *fact.aliases, *fact.driver_names):
            ids = found.setdefault(_words(spelling), [])
            if fact.id not in ids:
                ids.append(fact.id)
    return {words: tuple(ids) for words, ids in found.items()}


def _words(text: str) -> frozenset[str]:
    """The words of a name in any order, socket generations dropped: "H100-80GB-SXM" is "H100 SXM5 80GB"."""
    name = _VENDOR_WORDS.sub("", re.sub(r"[_\-:,()/]+", " ", plain(text)))
    name = re.sub(r"\b(sxm|hbm)\d?e?\b", lambda found: found[1], _MEMORY.sub(r"\1gb", name))
    return frozenset(name.split()) - {"hbm"}


def _named(catalog: Catalog, text: str, pointer: str) -> tuple[GpuFact, tuple[str, ...], str | None]:
    key = gpu_key(text)
    if key in UNDECIDED:
        options = tuple(name for name in UNDECIDED[key] if name in catalog.gpus)
        raise InvalidInput(
            [FieldError(pointer, f"{text[:60]} has been the name of {len(options)} GPUs", text[:60], None, options)]
        )
    if key in BARE and plain(text) not in catalog.gpus and BARE[key][0] in catalog.gpus:
        exact = _index(catalog).find(text)
        name, reason = BARE[key]
        if len(exact) != 1 or exact[0] == name:
            return catalog.gpus[name], _relatives(catalog, name, key), reason
    for ids in _candidates(catalog, text):
        if len(ids) == 1:
            return catalog.gpus[ids[0]], _relatives(catalog, ids[0], key), None
        if ids:
            raise InvalidInput(
                [FieldError(pointer, f"{text[:60]} could mean several GPUs", text[:60], None, tuple(ids[:5]))]
            )
    raise InvalidInput([_unknown(catalog, text, pointer)])


def _candidates(catalog: Catalog, text: str) -> Iterator[list[str]]:
    yield _index(catalog).find(text)
    yield list(_word_sets(catalog).get(_words(text), ()))
    instance = _INSTANCE.fullmatch(plain(text))
    if instance:
        yield _index(catalog).find(instance[1])


def _relatives(catalog: Catalog, name: str, key: str) -> tuple[str, ...]:
    """Other devices whose id starts with a bare name ("h100": PCIe, NVL, 96 GB); () for a name that says more."""
    stem = re.match(r"[a-z]+\d+", key)
    if not stem or len(key) > len(stem[0]) + 4:
        return ()
    same = re.compile(re.escape(stem[0]) + r"[a-z]*")
    return tuple(other for other in catalog.gpus if other != name and same.fullmatch(other.split("-")[0]))


def _unknown(catalog: Catalog, text: str, pointer: str) -> FieldError:
    """What people write that is closest; the letters a name starts with count most (H1000: H100, H200)."""
    given, key = text[:60], gpu_key(text)
    by_key: dict[str, str] = {}
    for fact in catalog.gpus.values():
        for spelling in (fact.id, *fact.aliases):
            by_key.setdefault(gpu_key(spelling), fact.id)
    letters = re.match(r"[a-z]*", key)
    family = [known for known in by_key if letters and letters[0] and known.startswith(letters[0])]
    close = (*difflib.get_close_matches(key, family, n=6, cutoff=0.5), *nearest(key, by_key, most=6))
    suggestions = tuple(dict.fromkeys(_short_name(catalog.gpus[by_key[known]]) for known in close))[:3]
    detail = f"{given} is not a GPU of the catalogue" if given.strip() else "the GPU has no name"
    return FieldError(pointer, detail, given, "a name like H100, a100-80g or MI300X", suggestions)


def _short_name(fact: GpuFact) -> str:
    """The shortest alias that is a bare name, as people write it (H100), else the id."""
    bare = [alias for alias in fact.aliases if re.fullmatch(r"[A-Z]+\d+[A-Z]*", alias)]
    return min(bare, key=len, default=fact.id)


def _is_data_centre(fact: GpuFact) -> bool:
    return (
        fact.vendor in ("NVIDIA", "AMD")
        and fact.memory_bytes is not None
        and not _CONSUMER.search(f"{fact.id} {fact.name}".casefold())
    )
