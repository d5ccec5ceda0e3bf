"""A refused command: each error under the word that caused it, with what is allowed and what was probably meant."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from service.engine.errors import FieldError, InvalidInput
from service.requests.grammar import Command, read_command

MARGIN = "  "
#: What may stand for a key is a long list; help shows it better.
HELP = "trainmem size --help lists every key"


def write_refusal(text: str, refused: InvalidInput, console: Console) -> None:
    """Write every error of a refused command."""
    command = read_command(text)
    console.print(Text("This cannot be answered as it was asked.", "bold red"))
    for error in refused.errors:
        console.print()
        _write_error(command, command.placed(error), console)


def _write_error(command: Command, error: FieldError, console: Console) -> None:
    detail = error.detail
    if error.position is not None and command.text.strip():
        detail = detail.removeprefix(f"character {error.position}: ")
        line, start, length = _around(command.text, error, console.width - len(MARGIN))
        console.print(Text(MARGIN + line), no_wrap=True, crop=False)
        console.print(Text(MARGIN + " " * start + "^" * length, "red"), no_wrap=True, crop=False)
    console.print(Text.assemble(MARGIN, _sentence(detail), _meant(error)))
    unknown_key = error.position is not None and detail.endswith("is not a key")
    if error.allowed and not (error.suggestions and unknown_key):
        allowed = HELP if unknown_key else f"Allowed: {error.allowed}"
        for part in Text(allowed, "dim").wrap(console, console.width - len(MARGIN)):
            console.print(Text.assemble(MARGIN, part))


def _around(text: str, error: FieldError, width: int) -> tuple[str, int, int]:
    """The part of the command around an error, where the word starts in it, and how long it is."""
    position = error.position or 0
    given = error.given or ""
    length = len(given) if given and text.startswith(given, position) else _word_length(text, position)
    first = 0 if len(text) <= width else max(0, min(position - width // 3, len(text) - width))
    line = text[first : first + width].replace("\n", " ").replace("\t", " ")
    if first:
        line = "…" + line[1:]
    if first + width < len(text):
        line = line[:-1] + "…"
    start = position - first
    return line, start, max(1, min(length, width - start))


def _word_length(text: str, position: int) -> int:
    words = text[position:].split(maxsplit=1)
    return len(words[0]) if words else 1


def _sentence(detail: str) -> str:
    return detail if detail.endswith((".", "?", "!")) else f"{detail}."


def _meant(error: FieldError) -> Text:
    if not error.suggestions:
        return Text("")
    return Text.assemble(" Did you mean ", (", ".join(error.suggestions), "bold"), "?")
