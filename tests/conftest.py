"""Fixtures that every room shares: an environment without surprises, and a fresh, migrated database of either kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from service import migration
from service.database import Database
from service.settings import Settings
from tests.support.postgresql import Cluster, running_cluster

# slack_sdk and httpx send even loopback calls to a proxy that the environment names.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on how the machine is set up."""
    for name in list(os.environ):
        if name.startswith(("TRAINMEM_", "SLACK_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A PostgreSQL server, started when the first test asks for it."""
    with running_cluster(tmp_path_factory.mktemp("postgresql")) as cluster:
        yield cluster


@pytest.fixture
def database_kind(request: pytest.FixtureRequest) -> str:
    """`sqlite`, unless the test is marked `on_both_databases`."""
    return getattr(request, "param", "sqlite")


@pytest.fixture
def empty_database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database in which nothing was ever done."""
    if database_kind == "postgresql":
        return request.getfixturevalue("postgresql").new_database()
    return f"sqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture
def database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database of one's own: a copy of one that was migrated once in this run."""
    template = request.getfixturevalue(f"migrated_{database_kind}")
    if database_kind == "postgresql":
        return request.getfixturevalue("postgresql").new_database(template)
    shutil.copy(template, tmp_path / "trainmem.db")
    return f"sqlite:///{tmp_path / 'trainmem.db'}"


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a migrated SQLite database."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    _migrate(f"sqlite:///{path}")
    return str(path)


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: Cluster) -> str:
    """The name of a migrated PostgreSQL database."""
    url = postgresql.new_database()
    _migrate(url)
    name = sa.make_url(url).database
    assert name is not None
    return name


def _migrate(url: str) -> None:
    with Database(Settings(database_url=url)) as database:
        migration.upgrade(database)


@pytest.fixture
def settings(database_url: str) -> Settings:
    """Settings of a service on the test's own database."""
    return Settings(database_url=database_url, log_level="error")


@pytest.fixture
def open_database() -> Iterator[Callable[[str], Database]]:
    """Opens databases by URL and closes them at the end."""
    opened: list[Database] = []

    def open_url(url: str) -> Database:
        opened.append(Database(Settings(database_url=url)))
        return opened[-1]

    yield open_url
    for database in opened:
        database.dispose()


@pytest.fixture
def database(database_url: str, open_database: Callable[[str], Database]) -> Database:
    """The test's own migrated database, open."""
    return open_database(database_url)
