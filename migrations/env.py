"""Alembic's entry: migrates the connection that service.migration hands over, or the database of the settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context

import service.access.models
import service.audit.models
import service.catalog.models
import service.sizings.decisions.models
import service.sizings.models
import service.sizings.observations.models  # noqa: F401
from service.database import Base, Database
from service.settings import Settings


def run(connection: sa.Connection) -> None:
    """Everything in the transaction that is already open on `connection`."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_server_default=True,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    run(given)
else:
    with Database(Settings.from_environ()).engine.begin() as opened:
        run(opened)
