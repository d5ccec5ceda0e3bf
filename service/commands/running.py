"""What every operator's command needs: settings, an open database, who sits at the terminal, errors as sentences."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator
from contextlib import contextmanager

import click
import sqlalchemy as sa

from service.database import Database
from service.door import Caller
from service.engine.errors import InvalidInput
from service.errors import TrainmemError
from service.settings import Settings


@contextmanager
def opened() -> Iterator[tuple[Settings, Database]]:
    """The settings and the database they name. What goes wrong inside is one sentence on standard error."""
    try:
        settings = Settings.from_environ()
        with Database(settings) as database:
            yield settings, database
    except InvalidInput as refused:
        raise click.ClickException("\n".join(_told(error) for error in refused.errors)) from refused
    except TrainmemError as refused:
        raise click.ClickException(str(refused)) from refused
    except (sa.exc.OperationalError, sa.exc.ProgrammingError, sa.exc.InterfaceError) as error:
        raise click.ClickException(f"{error.orig}\nIs the database up, and was trainmem migrate run?") from error


def operator() -> Caller:
    """Whoever sits at the terminal of the service, by the name of the account."""
    try:
        account = getpass.getuser()
    except (OSError, KeyError):
        account = "unknown"
    return Caller("operator", re.sub(r"[^A-Za-z0-9._@-]", "_", account)[:100])


def _told(error: object) -> str:
    detail, allowed = getattr(error, "detail", ""), getattr(error, "allowed", None)
    near = getattr(error, "suggestions", ())
    more = f"; did you mean {' or '.join(near)}?" if near else f"; allowed: {allowed}" if allowed else ""
    return f"{detail}{more}"
