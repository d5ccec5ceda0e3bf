"""A sizing as a page of text: the verdict first, then where every byte goes, what would change it, what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.engine.units import format_gib, format_parameters
from service.terminal.assumptions import assumptions, value_text
from service.terminal.bar import memory_bar
from service.terminal.tables import Rows, alternatives_table, comparison_table, levers_table, shown_terms, terms_table
from service.terminal.wording import gpus_text, layout_text, moment_text, money_text, term_name

VERDICT_STYLES = {"fits": "bold green", "tight": "bold yellow", "does_not_fit": "bold red"}
MOST_ROWS = 5
MOST_COMPARED = 16
LABEL_WIDTH = 9
#: From here on the reason for a term stands in the table, not below it.
WIDE = 96
#: Smaller parts of the floor are left out.
WORTH_NAMING_BYTES = 50_000_000

Sizing = Mapping[str, Any]


def write_sizing(sizing: Sizing, console: Console) -> None:
    """Write the whole answer: the contract's sizing as a person reads it."""
    console.print(Text(sizing["verdict"]["text"], VERDICT_STYLES[sizing["verdict"]["code"]]))
    console.print(Text(_question(sizing), "dim"))
    console.print()
    if console.is_terminal:
        _write_bar(sizing, console)
    _write_terms(sizing, console)
    _write_lines("Peak", _peak(sizing), console)
    _write_lines("Layout", [layout_text(sizing["per_gpu"]["layout"])], console)
    recommendation = sizing["recommendation"] or {"why": [], "alternatives": [], "layout": None}
    if recommendation["layout"] not in (None, sizing["per_gpu"]["layout"]):
        instead = f"{gpus_text(recommendation)}: {layout_text(recommendation['layout'])}"
        _write_lines("Instead", [instead], console)
    _write_lines("Why", recommendation["why"], console)
    _write_lines("Fits", _nearest_fit(sizing), console)
    _write_lines("Floor", _floor(sizing), console)
    _write_table("To use less", levers_table, sizing["levers"], console)
    _write_table("Other layouts", alternatives_table, recommendation["alternatives"], console)
    _write_table("Compared", comparison_table, _ranked(sizing), console, most=MOST_COMPARED)
    _write_lines("Time", _time(sizing), console)
    _write_lines("Assumed", assumptions(sizing["inputs"]), console)
    _write_lines("Warning", [warning["message"] for warning in sizing["warnings"]], console, style="bold yellow")


def _question(sizing: Sizing) -> str:
    """What was asked, in one line: "Llama 3.1 70B (70.6B parameters) · 8,192 tokens × micro-batch 2"."""
    model = sizing["model"]
    parameters = f"{format_parameters(model['parameters'])} parameters"
    if model["trainable_parameters"] != model["parameters"]:
        parameters += f", {format_parameters(model['trainable_parameters'])} trained"
    length, batch = sizing["inputs"]["sequence_length"]["value"], sizing["per_gpu"]["layout"]["micro_batch"]
    return f"{model['name']} ({parameters}) · {length:,} tokens × micro-batch {batch}"


def _write_bar(sizing: Sizing, console: Console) -> None:
    per_gpu, memory_bytes = sizing["per_gpu"], sizing["gpu"]["memory_bytes"]
    console.print(memory_bar(per_gpu, memory_bytes, width=console.width))
    usable = format_gib(per_gpu["usable_bytes"])
    console.print(Text(f"one GPU of {format_gib(memory_bytes)}, usable up to │ {usable}", "dim", justify="right"))
    console.print()


def _write_terms(sizing: Sizing, console: Console) -> None:
    beside = console.width >= WIDE
    console.print(terms_table(sizing, because=beside))
    if not beside:
        console.print()
        for term in shown_terms(sizing):
            _write_lines(term_name(term), [term["because"]], console, width=len("optimizer moments") + 2, gap=False)


def _peak(sizing: Sizing) -> list[str]:
    per_gpu = sizing["per_gpu"]
    peak, left = per_gpu["peak"], per_gpu["headroom_bytes"]
    room = f"{format_gib(left)} left" if left >= 0 else f"{format_gib(-left)} too much"
    certainty = f"{peak['confidence']} confidence: {peak['because']}"
    lines = [
        f"{moment_text(per_gpu)}: needs {format_gib(peak['needed_bytes'])} of {format_gib(per_gpu['usable_bytes'])} "
        f"usable, {room}"
    ]
    if per_gpu["fits"]:
        likely = f"{format_gib(peak['low_bytes'])} to {format_gib(peak['high_bytes'])}"
        lines.append(f"nvidia-smi shows {format_gib(peak['device_bytes'])} ({likely}; {certainty})")
    else:
        lines.append(certainty)
    return [*lines, f"{format_gib(per_gpu['host_bytes'])} in host memory per GPU"] if per_gpu["host_bytes"] else lines


def _floor(sizing: Sizing) -> list[str]:
    floor = sizing["sharding_floor"]
    if not floor:
        return []
    largest = sorted(floor["terms"], key=lambda term: -term["bytes"])
    parts = [
        f"{term_name(term)} {format_gib(term['bytes'])}" for term in largest if term["bytes"] >= WORTH_NAMING_BYTES
    ]
    lines = [f"{format_gib(floor['bytes_per_gpu'])} on every GPU, however many share the states: {', '.join(parts)}"]
    if not floor["fits"]:
        lines.append("more than a GPU holds: sharding alone will never make it fit")
    if floor["helps_until_gpus"]:
        lines.append(f"more GPUs help up to {floor['helps_until_gpus']:,}")
    return [*lines, f"then: {floor['then']}"] if floor["then"] else lines


def _nearest_fit(sizing: Sizing) -> list[str]:
    nearest = sizing["nearest_fit"]
    if not nearest:
        return []
    change = " ".join(f"{name}={value_text(name, value)}" for name, value in nearest["change"].items())
    peak, layout = format_gib(nearest["peak_bytes"]), layout_text(nearest["layout"])
    return [f"with {change} on {gpus_text(nearest)}, {peak} each: {layout}"]


def _time(sizing: Sizing) -> list[str]:
    time = sizing["time"]
    if not time:
        return []
    text = f"{time['step_s']:.2f} s a step, {time['tokens_per_s']:,.0f} tokens/s, MFU {time['mfu']:.0%}"
    if time["days"] is not None:
        text += f"; {time['days']:,.1f} days"
    return [f"{text}, {money_text(time['cost'])}" if time["cost"] is not None else text]


def _write_lines(
    heading: str,
    lines: Sequence[str],
    console: Console,
    *,
    style: str = "bold",
    width: int = LABEL_WIDTH,
    gap: bool = True,
) -> None:
    """Lines with a heading at the left of the first, and a blank line above."""
    if lines and gap:
        console.print()
    for number, line in enumerate(lines):
        for row, part in enumerate(Text(line).wrap(console, console.width - width)):
            part.rstrip()
            label = Text(f"{heading if number + row == 0 else '':<{width}}", style)
            console.print(Text.assemble(label, part), no_wrap=True, crop=False)


def _ranked(sizing: Sizing) -> Rows:
    """The GPUs compared, those that hold the run first, and then as the goal ranks them."""
    goal = sizing["inputs"].get("goal", {}).get("value")

    def rank(row: Mapping[str, Any]) -> tuple[bool, float, float]:
        first = {"cost": float((row["cost"] or {}).get("usd", inf)), "time": row["step_s"] or inf}.get(goal, 0.0)
        return not row["fits"], first, row["gpus"] or inf

    return sorted(sizing["comparison"] or [], key=rank)


def _write_table(
    heading: str, table: Callable[[Rows], Table], rows: Rows | None, console: Console, *, most: int = MOST_ROWS
) -> None:
    """At most so many rows, best first, under a heading, and a blank line above."""
    if rows:
        console.print()
        console.print(Text(heading, "bold"))
        console.print(table(rows[:most]))
        if len(rows) > most:
            console.print(Text(f"and {len(rows) - most} more (--json lists them)", "dim"))
