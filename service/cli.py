"""The `trainmem` command.

`trainmem size` answers from the packaged catalogue, with no server and no database: it imports neither Flask nor
SQLAlchemy, and what a command needs is imported inside it, so that an answer takes a fraction of a second.
Exit status of `size`: 0 it fits, 1 it does not, 2 it was refused; with --batch 0 when every line was answered.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

import click

from service import __version__
from service.commands.lazy import add_to

FITS, DOES_NOT_FIT, REFUSED, DEFECT, INTERRUPTED = 0, 1, 2, 70, 130
#: Everything behind `size` that is not one of its own options is text for the command grammar.
AS_TEXT = {"ignore_unknown_options": True, "max_content_width": 100}


@click.group(context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name="trainmem", message="%(prog)s %(version)s")
def cli() -> None:
    """What a training run needs before anyone queues for a GPU.

    \b
    trainmem size "70B seq=8k mb=2 gpu=H100"    how many GPUs, which layout, where every byte goes
    trainmem serve                              the same over HTTP, with a page and an audit
    """


class SizeCommand(click.Command):
    """`size`, whose help lists the keys; they are looked up only when help is asked for."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from service.requests.help_text import key_table

        formatter.write("\n" + key_table(width=formatter.width))


@cli.command(cls=SizeCommand, context_settings=AS_TEXT, short_help="Size a training run.")
@click.argument("text", nargs=-1, type=click.UNPROCESSED)
@click.option("--json", "as_json", is_flag=True, help="Print the sizing as JSON.")
@click.option("--batch", type=click.File("rb"), help="Read one JSON request a line (- is standard input).")
def size(text: tuple[str, ...], as_json: bool, batch: BinaryIO | None) -> None:
    """Size a training run: TEXT is the model and key=value words in any order; keys are flags too.

    \b
    trainmem size 70B seq=8k mb=2 gpu=H100
    trainmem size "llama 3 8b" lora=16 8xA100-80G tp2 ckpt=full
    trainmem size 405B --sequence-length 128k --gpu H200 --goal cost --json
    trainmem size --batch requests.jsonl > sizings.jsonl
    """
    from service.terminal.command_line import command_text

    if batch is not None:
        from service.terminal.batch import answer_lines

        if text:
            raise click.UsageError("--batch reads requests from a file; it takes no TEXT.")
        answer_lines(batch, sys.stdout)
        return
    if not text:
        raise click.UsageError('Say what to size, for example: trainmem size "70B seq=8k mb=2 gpu=H100"')
    sys.exit(_size_one(command_text(text), as_json=as_json))


def _size_one(command: str, *, as_json: bool) -> int:
    from service.catalog.facts import packaged
    from service.engine.errors import InvalidInput
    from service.requests.schemas import load_command
    from service.sizings.answer import answer

    try:
        sizing = answer(load_command(command), packaged())
    except InvalidInput as refused:
        return _refuse(command, refused, as_json=as_json)
    if as_json:
        print(json.dumps(sizing, indent=2, ensure_ascii=False))
    else:
        from service.terminal.console import console
        from service.terminal.report import write_sizing

        write_sizing(sizing, console(sys.stdout))
    return FITS if sizing["per_gpu"]["fits"] else DOES_NOT_FIT


@cli.command(context_settings=AS_TEXT, short_help="Show every tensor behind an answer.")
@click.argument("text", nargs=-1, type=click.UNPROCESSED)
@click.option("--term", metavar="TERM", help="Only the rows of this term, where it is largest (activations, …).")
@click.option("--moment", metavar="MOMENT", help="The rows alive at this moment of the step (loss, …).")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def explain(text: tuple[str, ...], term: str | None, moment: str | None, as_json: bool) -> None:
    """Show every tensor behind the sizing of TEXT: formula, sizes put in, bytes, why it exists, who says so.

    \b
    trainmem explain 70B seq=8k --term activations
    trainmem explain 8B stack=huggingface gpus=8 --moment loss --json
    """
    from service.terminal.command_line import command_text

    if not text:
        raise click.UsageError('Say what to explain, for example: trainmem explain "70B seq=8k" --term activations')
    sys.exit(_explain_one(command_text(text), term, moment, as_json=as_json))


def _explain_one(command: str, term: str | None, moment: str | None, *, as_json: bool) -> int:
    from service.catalog.facts import packaged
    from service.engine.errors import InvalidInput
    from service.requests.schemas import load_command
    from service.sizings.answer import Detail, answer

    try:
        sizing = answer(load_command(command), packaged(), Detail(term, moment))
    except InvalidInput as refused:
        return _refuse(command, refused, as_json=as_json)
    if as_json:
        print(json.dumps(sizing["rows"], indent=2, ensure_ascii=False))
    else:
        from service.terminal.console import console
        from service.terminal.explanation import write_explanation

        write_explanation(sizing, console(sys.stdout))
    return FITS if sizing["per_gpu"]["fits"] else DOES_NOT_FIT


def _refuse(command: str, refused: Any, *, as_json: bool) -> int:
    from service.terminal.console import console
    from service.terminal.refusal import write_refusal

    if as_json:
        from service.errors import problem_document

        print(json.dumps({"error": problem_document(refused)}, indent=2, ensure_ascii=False))
    write_refusal(command, refused, console(sys.stderr))
    return REFUSED


@cli.command(short_help="List the models that are known.")
@click.argument("words", nargs=-1, metavar="[FILTER]...")
def models(words: tuple[str, ...]) -> None:
    """List the models that are known, or those whose names have all the words of FILTER."""
    from service.catalog.facts import packaged
    from service.terminal.console import console
    from service.terminal.listings import write_models

    sys.exit(FITS if write_models(packaged(), " ".join(words), console(sys.stdout)) else DOES_NOT_FIT)


@cli.command(short_help="List the GPUs that are known.")
@click.argument("words", nargs=-1, metavar="[FILTER]...")
def gpus(words: tuple[str, ...]) -> None:
    """List the GPUs that are known, or those whose names have all the words of FILTER."""
    from service.catalog.facts import packaged
    from service.terminal.console import console
    from service.terminal.listings import write_gpus

    sys.exit(FITS if write_gpus(packaged(), " ".join(words), console(sys.stdout)) else DOES_NOT_FIT)


def _start(run: Callable[[], Any]) -> Any:
    """Run something that reads settings; a bad one is a sentence, not a traceback."""
    from service.errors import SettingError

    try:
        return run()
    except SettingError as refused:
        raise click.ClickException(str(refused)) from refused


@cli.command(short_help="Judge the engine by measured runs.")
@click.option("--source", help="Only this source family.")
@click.option("--worst", type=click.IntRange(min=0), default=0, help="Also list this many cases furthest off.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def accuracy(source: str | None, worst: int, as_json: bool) -> None:
    """Judge the engine by the measured runs that are packaged with it: errors, verdicts, intervals."""
    from service.accuracy import command

    if source is not None and source not in command.sources():
        raise click.BadParameter(f"{source!r} is none of {', '.join(command.sources())}.", param_hint="--source")
    click.echo(command.as_json(source) if as_json else command.report(source, worst))


@cli.command(short_help="Serve API, documentation and pages.")
def serve() -> None:
    """Migrate, load the catalogue, and serve API, documentation and pages.

    SQLite in ./var unless TRAINMEM_DATABASE_URL names a PostgreSQL.
    """
    from service.server import serve as run

    _start(run)


@cli.command(short_help="Bring the database up to date.")
def migrate() -> None:
    """Bring the database up to date and load the packaged catalogue."""
    from service.server import migrate as run

    click.echo(_start(run))


@cli.group(invoke_without_command=True, short_help="Run the Slack bot.")
@click.pass_context
def bot(context: click.Context) -> None:
    """Run the Slack bot, in Socket Mode or over HTTP as its settings say."""
    if context.invoked_subcommand is None:
        from bot.server import run

        sys.exit(run())


@bot.command(short_help="Check how the bot is set up.")
def check() -> None:
    """Say for tokens, permissions and service what is well and what is missing."""
    from bot.check import run

    sys.exit(run())


add_to(cli)


def main() -> None:
    """Run the command. Misuse exits with 2 like a refusal, a defect of ours with 70: 1 says that a run does not fit."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that cannot show × or · gets a ?
    try:
        cli(standalone_mode=False)
    except click.ClickException as misuse:
        misuse.show()
        sys.exit(REFUSED)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # "trainmem models | head": nobody reads on
        sys.stderr.close()
        sys.exit(INTERRUPTED)
    except Exception as defect:
        traceback.print_exc()
        print(f"\ntrainmem: this is a defect of ours ({type(defect).__name__}); please report it.", file=sys.stderr)
        sys.exit(DEFECT)
