"""The catalogue as lists: which models and GPUs are known, and by which names."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.catalog.facts import Catalog
from service.engine.units import GIB, format_parameters, format_tokens

MOST_ALIASES = 3


def write_models(catalog: Catalog, words: str, console: Console) -> int:
    """List the models whose names have all the words, smallest first; gives how many they are."""
    found = [model for model in catalog.models.values() if _has(words, (model.id, model.name, *model.aliases))]
    table = _table("id", "parameters", "longest", "name", "also")
    for model in sorted(found, key=lambda model: model.total or 0):
        table.add_row(
            model.id,
            format_parameters(model.total) if model.total else "unknown",
            format_tokens(model.max_positions) if model.max_positions else "",
            model.name if model.supported else f"{model.name} (total only, not sized)",
            _also(model.aliases, model.id, model.name),
        )
    return _write(table, len(found), "model", words, console)


def write_gpus(catalog: Catalog, words: str, console: Console) -> int:
    """List the GPUs whose names have all the words; gives how many they are."""
    found = [gpu for gpu in catalog.gpus.values() if _has(words, (gpu.id, gpu.name, *gpu.aliases))]
    table = _table("id", "memory GiB", "in a node", "USD/h", "name", "also")
    for gpu in found:
        table.add_row(
            gpu.id,
            f"{gpu.memory_bytes / GIB:.1f}" if gpu.memory_bytes else "estimated",
            str(gpu.gpus_per_node),
            f"{gpu.price_usd_per_hour:.2f}" if gpu.price_usd_per_hour else "",
            gpu.name,
            _also(gpu.aliases, gpu.id, gpu.name),
        )
    return _write(table, len(found), "GPU", words, console)


def _has(words: str, names: Iterable[str]) -> bool:
    text = " ".join(names).lower()
    return all(word in text for word in words.lower().split())


def _also(aliases: tuple[str, ...], *shown: str) -> str:
    others = [alias for alias in aliases if alias not in shown]
    return ", ".join(others[:MOST_ALIASES]) + (", …" if len(others) > MOST_ALIASES else "")


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        numeric = heading in ("parameters", "longest", "memory GiB", "in a node", "USD/h")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=numeric or heading == "id")
    return table


def _write(table: Table, count: int, what: str, words: str, console: Console) -> int:
    if count:
        console.print(table)
        console.print(Text(f"{count} {what}{'' if count == 1 else 's'}", "dim"))
    else:
        console.print(Text(f"No {what} has {words!r} in its names."))
    return count
