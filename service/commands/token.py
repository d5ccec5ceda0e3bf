"""`trainmem token`: give out API tokens, list them, revoke them."""

from __future__ import annotations

import datetime
import re

import click

from service.access import tokens
from service.commands.running import opened, operator
from service.scopes import SCOPES

_DURATION = re.compile(r"([1-9][0-9]{0,4})([hdwy])")
_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "y": 365}


class Duration(click.ParamType[datetime.timedelta | None]):
    """`180d`, `12h`, `2w`, `1y`, or `never`."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.timedelta | None:
        if value is None or value == "never":
            return None
        if not (read := _DURATION.fullmatch(str(value))):
            self.fail(f"{value} is no duration; write 180d, 12h, 2w, 1y or never.", param, ctx)
        return datetime.timedelta(days=int(read[1]) * _UNITS[read[2]])


@click.group()
def token() -> None:
    """Give out and revoke API tokens.

    \b
    trainmem token create --name slurm --scope size --expires 180d
    trainmem token list
    trainmem token revoke slurm
    """


@token.command(epilog="\n".join(["\b", *(f"{name:14}{meaning}" for name, meaning in SCOPES.items())]))
@click.option("--name", required=True, help="What the token is for; it stands in the audit.")
@click.option("--scope", "scopes", required=True, multiple=True, help="What it may do; commas or several times.")
@click.option("--expires", type=Duration(), default="180d", show_default=True, help="180d, 12h, 2w, 1y or never.")
@click.option("--team", help="The team whose sizings these are, for reports.")
@click.option("--for-others", is_flag=True, help="It may name whom it asks for, as the Slack bot does.")
def create(
    name: str, scopes: tuple[str, ...], expires: datetime.timedelta | None, team: str | None, for_others: bool
) -> None:
    """Make a token and show it, this once."""
    wanted = [scope.strip() for part in scopes for scope in part.split(",") if scope.strip()]
    with opened() as (_, database), database.writing() as session:
        made, secret = tokens.create(
            session, name=name, scopes=wanted, by=operator(), team=team, for_others=for_others, valid_for=expires
        )
    until = "never expires" if made.expires_at is None else f"expires {made.expires_at:%Y-%m-%d %H:%M} UTC"
    click.echo(f"{made.id} {made.name}: {', '.join(sorted(made.scopes))}; {until}. It is not shown again:", err=True)
    click.echo(secret)


@token.command("list")
def list_tokens() -> None:
    """Show every token that was given out, without its secret."""
    now = datetime.datetime.now(datetime.UTC)
    with opened() as (_, database), database.reading() as session:
        found = tokens.every(session)
    for one in found:
        until = "never" if one.expires_at is None else f"{one.expires_at:%Y-%m-%d}"
        more = " for-others" if one.for_others else ""
        team = f" team={one.team}" if one.team else ""
        scopes = ",".join(sorted(one.scopes))
        click.echo(f"{one.id}  {one.name:20} {one.state(now):8} expires {until:10}  {scopes}{more}{team}")
    if not found:
        click.echo("No token was given out yet.", err=True)


@token.command()
@click.argument("which", metavar="ID-OR-NAME")
def revoke(which: str) -> None:
    """End a token, or all with one name. Running services notice within a second."""
    with opened() as (_, database), database.writing() as session:
        ended = tokens.revoke(session, which=which, by=operator())
    for one in ended:
        click.echo(f"{one.id} {one.name} is revoked.")
    if not ended:
        click.echo(f"{which} was revoked before.", err=True)
