"""The tables of a sizing. Every column of sizes says its unit: whole models in GB, one GPU in GiB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from service.engine.units import GB, GIB
from service.terminal.bar import TERM_STYLES
from service.terminal.wording import dollars, layout_text, term_name

Rows = Sequence[Mapping[str, Any]]
NOTHING = "–"


def shown_terms(sizing: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terms of the fullest GPU, without those that this run does not have at all (masters of a frozen base)."""
    whole = _whole_model(sizing)
    return [term for term in sizing["per_gpu"]["terms"] if term["bytes"] or whole.get(term["term"], {}).get("bytes")]


def terms_table(sizing: Mapping[str, Any], *, because: bool) -> Table:
    """Each term for the whole model and for the fullest GPU at its peak, what sets it, and why it exists."""
    table = _table()
    for heading, width in (("", 17), ("whole model\nGB", 11), ("per GPU\nGiB", 7), ("bytes per\nparameter", 9)):
        table.add_column(heading, justify="right" if heading else "left", min_width=width, no_wrap=True)
    table.add_column("scales\nwith", no_wrap=True)
    if because:
        table.add_column("\nbecause", style="dim")
    model, device_bytes = sizing["whole_model"], sizing["per_gpu"]["peak"]["device_bytes"]
    model_bytes = model["state_bytes"] + model["activation_bytes"]
    gb, gib = _digits(model_bytes / GB), _digits(device_bytes / GIB)
    whole = _whole_model(sizing)
    for term in shown_terms(sizing):
        everywhere = whole.get(term["term"])
        cells = [
            Text(term_name(term), TERM_STYLES[term["term"]]),
            f"{everywhere['bytes'] / GB:,.{gb}f}" if everywhere else NOTHING,
            f"{term['bytes'] / GIB:,.{gib}f}",
            _bytes_per_parameter(everywhere),
            term["scales_with"],
        ]
        table.add_row(*cells, *([term["because"]] if because else []))
    table.add_section()
    table.add_row(
        Text("total", "bold"),
        f"{model_bytes / GB:,.{gb}f}",
        f"{device_bytes / GIB:,.{gib}f}",
        f"{model['bytes_per_parameter']:.2f}",
    )
    return table


def _whole_model(sizing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {term["term"]: term for term in sizing["whole_model"]["terms"]}


def _digits(total: float) -> int:
    """Digits behind the point that show three figures of a total, and at least one."""
    return 1 if total >= 10 else 2 if total >= 1 else 3


def levers_table(levers: Rows) -> Table:
    """What would take memory off each GPU, and what it costs."""
    table = _table("", "saves GiB", "peak GiB", "costs")
    for lever in levers:
        saves, peak = _gib(lever["saves_bytes_per_gpu"]), _gib(lever["peak_bytes"])
        table.add_row(lever["lever"], saves, peak, Text(lever["costs"], "dim"))
    return table


def alternatives_table(alternatives: Rows) -> Table:
    """Other layouts that hold the run."""
    table = _table("GPUs", "peak GiB", "left GiB", "layout")
    for other in alternatives:
        gpus, peak, left = f"{other['gpus']:,}", _gib(other["peak_bytes"]), _gib(other["headroom_bytes"])
        table.add_row(gpus, peak, left, layout_text(other["layout"]))
    return table


def comparison_table(comparison: Rows) -> Table:
    """The same run on other GPUs."""
    table = _table("", "GPUs", "peak GiB", "left GiB", "fits", "step s", "cost", "layout")
    for other in comparison:
        table.add_row(
            _gpu_name(other["gpu"]),
            f"{other['gpus']:,}" if other["gpus"] else NOTHING,
            _gib(other["peak_bytes"]),
            _gib(other["headroom_bytes"]),
            Text("yes", "green") if other["fits"] else Text("no", "red"),
            f"{other['step_s']:.2f}" if other["step_s"] else NOTHING,
            dollars(other["cost"]) if other["cost"] else NOTHING,
            layout_text(other["layout"]) if other["layout"] else NOTHING,
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for heading in headings:
        numeric = heading.endswith("GiB") or heading in ("GPUs", "step s")
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=numeric)
    return table


def _gpu_name(gpu: Any) -> str:
    return str(gpu.get("name") or gpu.get("id")) if isinstance(gpu, Mapping) else str(gpu)


def _gib(size_bytes: int | None) -> str:
    return NOTHING if size_bytes is None else f"{size_bytes / GIB:,.1f}"


def _bytes_per_parameter(term: Mapping[str, Any] | None) -> str:
    if term is None or term["bytes_per_parameter"] is None:
        return NOTHING
    return f"{term['bytes_per_parameter']:.2f}".rstrip("0").rstrip(".")
