"""Bringing a database to the newest schema, and telling whether it is there."""

from __future__ import annotations

import functools

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from service.database import Database, alone


def alembic_config() -> Config:
    """Alembic's configuration, found from the installed package: no file and no working directory needed."""
    config = Config()
    config.set_main_option("script_location", next(iter(migrations.__path__)))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(database: Database) -> None:
    """Run every migration that is missing, in one transaction. Two processes at once wait for each other."""
    config = alembic_config()
    with database.engine.begin() as connection:
        alone(connection, "migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@functools.cache
def newest_revision() -> str | None:
    """The revision that this release of the code is written for."""
    return ScriptDirectory.from_config(alembic_config()).get_current_head()


def revision_of(connection: sa.Connection) -> str | None:
    """The revision that the database is at; None when nothing was migrated yet."""
    return MigrationContext.configure(connection).get_current_revision()
