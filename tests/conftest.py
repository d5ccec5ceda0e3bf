"""Fixtures that every room shares: an environment without surprises, fresh databases of either kind, a fresh app."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import sqlalchemy as sa
from flask import Flask
from flask.testing import FlaskClient

from service import migration, server
from service.app import create_app
from service.current import database as database_of
from service.database import Database
from service.settings import Settings
from tests.support.postgresql import Cluster, running_cluster

# A busy machine is no defect.
hypothesis.settings.register_profile("trainmem", deadline=None)
hypothesis.settings.load_profile("trainmem")

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
def new_database(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str | None], str]:
    """Makes the URL of a new database of this kind: an empty one, or a copy of a template."""

    def make(template: str | None = None) -> str:
        if database_kind == "postgresql":
            cluster = request.getfixturevalue("postgresql")
            return cluster.new_database(sa.make_url(template).database if template else "template1")
        path = tmp_path / f"{'copy' if template else 'empty'}.db"
        if template:
            shutil.copy(str(sa.make_url(template).database), path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """URLs of databases that were prepared once in this run, by kind and what was done to them."""
    return {}


@pytest.fixture
def template(
    database_kind: str,
    templates: dict[tuple[str, str], str],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Settings], object]], str]:
    """Prepares a database once in this run and gives its URL."""

    def prepared(name: str, prepare: Callable[[Settings], object]) -> str:
        if (database_kind, name) not in templates:
            if database_kind == "postgresql":
                url = request.getfixturevalue("postgresql").new_database()
            else:
                url = f"sqlite:///{tmp_path_factory.mktemp('sqlite') / name}.db"
            prepare(Settings(database_url=url))
            templates[database_kind, name] = url
        return templates[database_kind, name]

    return prepared


@pytest.fixture
def empty_database_url(new_database: Callable[[str | None], str]) -> str:
    """A database in which nothing was ever done."""
    return new_database(None)


@pytest.fixture
def database_url(new_database: Callable[[str | None], str], template: Callable[..., str]) -> str:
    """A migrated database of one's own, with nothing in it."""
    return new_database(template("migrated", _migrate))


@pytest.fixture
def service_url(new_database: Callable[[str | None], str], template: Callable[..., str]) -> str:
    """A database of one's own as `trainmem migrate` leaves it: migrated, with the catalogue (audit entry 1)."""
    return new_database(template("served", server.migrate))


def _migrate(settings: Settings) -> None:
    with Database(settings) as database:
        migration.upgrade(database)


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
    """The test's own migrated database, open, with nothing in it."""
    return open_database(database_url)


@pytest.fixture
def settings(service_url: str) -> Settings:
    """Settings of a service on a database of its own. Override this fixture to change one."""
    return Settings(database_url=service_url, log_level="error")


@pytest.fixture
def app(settings: Settings) -> Iterator[Flask]:
    """A fresh service."""
    app = create_app(settings)
    yield app
    with app.app_context():
        database_of().dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Speaks HTTP to the fresh service."""
    return app.test_client()


@pytest.fixture
def record(app: Flask) -> Iterator[Database]:
    """The database of the fresh service, to see what was written."""
    with app.app_context():
        yield database_of()
