"""`trainmem audit`: sign, verify, export, acknowledge, erase, renew the key. `trainmem keeper` signs in a loop."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from service.audit import checkpoints, erasure, export, faults, keeper, keys, notes, publication, reading
from service.audit import service as log
from service.audit.verification import Fault, Verifier
from service.commands.running import opened, operator
from service.errors import SettingError

WHOLE, BROKEN = 0, 1
_DAY = re.compile(r"\d{4}-\d\d-\d\d(T.*)?")


class Moment(click.ParamType[datetime.datetime | None]):
    """A day or a moment in ISO 8601; UTC unless it says otherwise."""

    name = "moment"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.datetime | None:
        try:
            if not _DAY.fullmatch(str(value)):
                raise ValueError
            read = datetime.datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value} is no moment; write 2026-11-30 or 2026-11-30T14:00:00Z.", param, ctx)
        return read if read.tzinfo else read.replace(tzinfo=datetime.UTC)


@click.group()
def audit() -> None:
    """Sign, verify, export and look after the audit.

    \b
    trainmem audit verify                       the database, against every checkpoint
    trainmem audit export --output log.jsonl
    trainmem audit verify log.jsonl --checkpoint notes.txt --vkey trainmem/audit+…
    """


@audit.command()
def checkpoint() -> None:
    """Verify the log, sign what it is now, and publish that. Does nothing if nothing changed."""
    with opened() as (settings, database):
        kept = keeper.keep(database, settings, by=operator())
        with database.reading() as session:
            last = checkpoints.latest(session)
    for sentence in kept.failed:
        click.echo(f"Error: {sentence}", err=True)
    if kept.note is None:
        click.echo("Nothing changed since the last checkpoint." if last else "The log is empty.", err=True)
    else:
        click.echo(str(kept.note), nl=False)
    sys.exit(BROKEN if kept.failed else WHOLE)


@audit.command()
@click.argument("exported", type=click.File("r", encoding="utf-8"), required=False, metavar="[EXPORT]")
@click.option(
    "--checkpoint",
    "note_files",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="File or directory of signed notes that the log must agree with.",
)
@click.option("--vkey", "vkeys", multiple=True, help="A public key that you know from elsewhere.")
def verify(exported: TextIO | None, note_files: tuple[Path, ...], vkeys: tuple[str, ...]) -> None:
    """Verify the database, or an EXPORT with no database and no network; names the first bad entry.

    Exit status: 0 all is well, 1 something is not as it was written, 2 it could not be verified.
    """
    try:
        outside = [note for path in note_files for note in publication.published(path)]
        pinned = [notes.VerifierKey.parse(text) for text in vkeys]
        if exported is None:
            with opened() as (settings, database), database.reading() as session:
                if not note_files and settings.checkpoint_path:
                    outside = publication.published(Path(settings.checkpoint_path))
                reading.one_state(session)
                found = checkpoints.verify(session, pinned=pinned, outside=outside)
                known = faults.unknown(session, found.faults)
            _conclude("The database", found.size, found.faults, sorted(found.checkpoints), acknowledged_from=known)
        else:
            _verify_export(exported, outside, pinned)
    except (notes.NotANote, export.NotAnExport, SettingError) as error:
        raise click.ClickException(str(error)) from error


def _verify_export(exported: TextIO, outside: Sequence[notes.Note], pinned: Sequence[notes.VerifierKey]) -> None:
    if outside and not pinned:
        raise click.UsageError("--checkpoint needs --vkey: a note proves nothing until its key is known.")
    signed = notes.by_size(outside, notes.trusted(pinned, outside))
    verifier: Verifier | None = None
    for rows in export.read(exported):
        if verifier is None:
            after = rows[0][0] - 1
            verifier = Verifier(after=after, previous=None if after else bytes(32), checkpoints=signed)
        verifier.feed(rows)
    if verifier is None:
        raise click.ClickException("The export has no entries.")
    if signed and not verifier.whole:
        raise click.UsageError("A checkpoint can only be held against an export that begins with entry 1.")
    found = verifier.end()
    covered = sorted(size for size in signed if size <= verifier.seq)
    _conclude("The export", verifier.seq, found, covered, acknowledged_from=found)


def _conclude(
    what: str, size: int, found: Sequence[Fault], signed: Sequence[int], *, acknowledged_from: Sequence[Fault]
) -> None:
    fresh = {fault.fingerprint for fault in acknowledged_from}
    for fault in sorted(found, key=lambda fault: fault.seq):
        click.echo(f"{'FAULT' if fault.fingerprint in fresh else 'known'}: {fault}")
    if found:
        first = min(found, key=lambda fault: fault.seq)
        click.echo(f"{what} is not as it was written; the first bad entry is {first.seq:,}.")
        sys.exit(BROKEN if fresh else WHOLE)
    if not signed:
        told = "No checkpoint was held against it"
    else:
        told = (
            f"It agrees with {len(signed):,} checkpoint{'s' * (len(signed) != 1)}, the last of {signed[-1]:,} entries"
        )
    newer = f"; {size - signed[-1]:,} are newer" if signed and size > signed[-1] else ""
    click.echo(f"{what} is whole: {size:,} entries, each as it was written. {told}{newer}.")


@audit.command("export")
@click.option("--since", type=Moment(), help="From this day or moment on.")
@click.option("--until", type=Moment(), help="Before this day or moment.")
@click.option("--format", "form", type=click.Choice(export.FORMATS), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File; standard output if not given.")
@click.option("--resume", is_flag=True, help="Go on behind the last whole line of the output file (JSON Lines).")
def export_command(
    since: datetime.datetime | None, until: datetime.datetime | None, form: str, output: Path | None, resume: bool
) -> None:
    """Write the log as lines that can be kept and verified elsewhere."""
    if resume and (output is None or form != "jsonl"):
        raise click.UsageError("--resume needs --output, and JSON Lines.")
    after = _cut_to_whole_lines(output) if resume and output is not None and output.exists() else 0
    with opened() as (_, database):
        with database.writing() as session:
            span = reading.span(session, since=since, until=until, after=after)
            told = {"after": span.after, "upto": span.upto, "format": form}
            log.append(session, action="audit.exported", actor=operator(), via="cli", subject=None, request=told)
        target = click.open_file(str(output or "-"), "a" if resume else "w", encoding="utf-8")
        with target as file, database.reading() as session:
            for text in export.lines(session, span, format=form):
                file.write(text)
    click.echo(f"{max(span.upto - span.after, 0):,} entries, {span.after + 1:,} to {span.upto:,}.", err=True)


def _cut_to_whole_lines(path: Path) -> int:
    """Remove a line that was cut off; gives the number in the last whole one."""
    last, whole_bytes = 0, 0
    with path.open("rb+") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            last, whole_bytes = line, whole_bytes + len(line)  # type: ignore[assignment]
        file.truncate(whole_bytes)
    return export.last_seq([last.decode()]) if last else 0  # type: ignore[attr-defined]


@audit.command()
@click.option("--reason", required=True, help="What was found out; it stands in the audit.")
def acknowledge(reason: str) -> None:
    """Say that the faults of the log are known, so that the service records again."""
    with opened() as (_, database):
        found = faults.acknowledge(database, by=operator(), reason=reason)
    for fault in found:
        click.echo(f"acknowledged: {fault}")
    if not found:
        click.echo("Nothing was stopped.", err=True)


@audit.command()
@click.argument("subject")
def erase(subject: str) -> None:
    """Erase the free text that belongs to SUBJECT: a sizing's or decision's id, an entry's number, or an actor."""
    with opened() as (_, database):
        count = erasure.erase(database, subject=subject, by=operator())
    click.echo(f"{count:,} text{'s' * (count != 1)} erased.")


@audit.command("new-key")
@click.option("--lost", is_flag=True, help="The old key is gone, so nothing vouches for the new one.")
def new_key(lost: bool) -> None:
    """Replace the key that signs checkpoints; the old one signs the new one."""
    with opened() as (settings, database):
        made = keys.renew(database, path=Path(settings.audit_key), name=settings.audit_origin, by=operator(), lost=lost)
    click.echo(str(made.verifier))


@click.command("keeper")
def keep() -> None:
    """Verify, sign and publish the audit every few minutes, until stopped."""
    from service import logs

    with opened() as (settings, _):
        logs.configure(settings)
        keeper.run(settings, by=operator())
