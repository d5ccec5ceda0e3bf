"""Engine and sessions, and what SQLite and PostgreSQL each need so that the same code is safe on both.

A `Database` belongs to one process: its engine is made at first use, after gunicorn has forked, because a connection
opened before the fork would be shared by every worker.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.orm import DeclarativeBase, Session

from service.settings import Settings


class Base(DeclarativeBase):
    """Root of every table. The naming convention makes constraint names the same on every database."""

    __table__: ClassVar[sa.Table]

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UtcDateTime(sa.types.TypeDecorator[datetime.datetime]):
    """An aware datetime in UTC on both databases; SQLite itself has no time zones and stores it as text."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None, dialect: sa.Dialect) -> datetime.datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        value = value.astimezone(datetime.UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime.datetime | None, dialect: sa.Dialect) -> datetime.datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)


#: 64-bit on PostgreSQL; on SQLite INTEGER, so that it is the rowid itself and not a second index beside it.
BigInteger = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


class Database:
    """Connections to one database, for one process."""

    def __init__(self, settings: Settings) -> None:
        self.url = sa.make_url(settings.database_url)
        self._lock_timeout_s = settings.lock_timeout_s
        self._pool_size = settings.threads

    @functools.cached_property
    def engine(self) -> sa.Engine:
        """One connection for each thread, and one to spare: a thread never needs two, so nobody waits for the pool."""
        common: dict[str, Any] = {"pool_size": self._pool_size, "max_overflow": 1, "pool_pre_ping": True}
        if self.url.get_backend_name() == "sqlite":
            return _sqlite_engine(self.url, self._lock_timeout_s, common)
        options = f"-c lock_timeout={round(self._lock_timeout_s * 1000)} -c timezone=UTC"
        return sa.create_engine(self.url, connect_args={"options": options, "connect_timeout": 5}, **common)

    @functools.cached_property
    def _reading_engine(self) -> sa.Engine:
        return self.engine.execution_options(write=False, postgresql_readonly=True)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one state of the database and waits for no writer."""
        with Session(self._reading_engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session in one transaction, committed at the end and rolled back on any exception."""
        with Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def dispose(self) -> None:
        """Close every connection; the next use opens new ones."""
        if "engine" in self.__dict__:
            self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.dispose()


def alone(connection: sa.Connection, doing: str) -> None:
    """Wait until no other transaction is `doing` the same. On SQLite every writing transaction is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"trainmem {doing}"))))


def _sqlite_engine(url: sa.URL, busy_timeout_s: float, options: dict[str, Any]) -> sa.Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(url, connect_args={"timeout": busy_timeout_s}, **options)

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver starts transactions late; we say BEGIN ourselves
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits when the power fails
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A deferred BEGIN that later writes fails at once with "database is locked", whatever the timeout;
        # a reader under BEGIN IMMEDIATE would wait for every writer.
        write = connection.get_execution_options().get("write", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
