"""Starting the service: migrate, load the catalogue, serve with gunicorn."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from flask import Flask
from gunicorn.app.base import BaseApplication

from service import migration
from service.audit import startup
from service.audit.service import Stopped
from service.catalog import service as catalog
from service.catalog.facts import packaged
from service.database import Database
from service.errors import SettingError
from service.settings import Settings
from service.sizings import idempotency

MOST_WORKERS = 9
WAIT_FOR_DATABASE_S = 30.0


def migrate(settings: Settings | None = None) -> str:
    """Bring the database to this release: schema, packaged catalogue. Says what was done; again, it does nothing.

    Waits a while for a database server that is only just starting; raises SettingError after that.
    """
    settings = settings or Settings.from_environ()
    with Database(settings) as database:
        _wait_for(database)
        migration.upgrade(database)
        with database.writing() as session:
            loaded = catalog.load(session, packaged())
            idempotency.forget_expired(session)
        shown = database.url.render_as_string(hide_password=True)
    return f"{shown} is at revision {migration.newest_revision()}, catalogue {'loaded' if loaded else 'unchanged'}."


def serve(settings: Settings | None = None) -> None:
    """Migrate, then serve API and pages until SIGTERM or SIGINT."""
    settings = settings or Settings.from_environ()
    print(migrate(settings), flush=True)
    print(_look_at_audit(settings), flush=True)
    Gunicorn(settings).run()


def _look_at_audit(settings: Settings) -> str:
    """Verify what was recorded, and record what the settings allow from now on. Says what was found."""
    with Database(settings) as database:
        said = startup.verify(database) if settings.verify_at_start else "The audit was not verified."
        with contextlib.suppress(Stopped):
            startup.record_settings(database, policy=settings.policy(), by=catalog.Release())
    return said


class Gunicorn(BaseApplication):
    """gunicorn without a configuration file. The app is made in each worker, after the fork: no shared connections."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in gunicorn_options(self.settings).items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        from service.app import create_app

        return create_app(self.settings)


def gunicorn_options(settings: Settings) -> dict[str, Any]:
    """Threads, so that a search for a layout holds up nobody; every worker has its own few database connections."""
    return {
        "bind": settings.bind,
        "proc_name": "trainmem",
        "worker_class": "gthread",
        "workers": settings.workers or min((os.cpu_count() or 1) + 1, MOST_WORKERS),
        "threads": settings.threads,
        "timeout": 30,
        "graceful_timeout": 30,
        "keepalive": 5,
        "max_requests": 20_000,
        "max_requests_jitter": 2_000,
        "worker_tmp_dir": "/dev/shm" if Path("/dev/shm").is_dir() else None,
        "control_socket_disable": True,
        "loglevel": "warning",
        "when_ready": _announce,
    }


def _announce(arbiter: Any) -> None:
    host, port = arbiter.LISTENERS[0].sock.getsockname()[:2]
    url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"
    print(
        f"trainmem is ready at {url} (API: {url}/docs)\n"
        f"Try: curl {url}/api/v1/sizings -H 'Content-Type: application/json'"
        """ -d '{"command": "70B seq=8k mb=2 gpu=H100"}'""",
        flush=True,
    )


def _wait_for(database: Database) -> None:
    deadline_s = time.monotonic() + WAIT_FOR_DATABASE_S
    while True:
        try:
            with database.engine.connect():
                return
        except (sa.exc.OperationalError, OSError) as error:
            if database.url.get_backend_name() == "sqlite" or time.monotonic() > deadline_s:
                cause = error.orig if isinstance(error, sa.exc.OperationalError) else error
                shown = database.url.render_as_string(hide_password=True)
                raise SettingError(f"TRAINMEM_DATABASE_URL: {shown} cannot be opened: {cause}") from error
            print("Waiting for the database …", file=sys.stderr, flush=True)
            time.sleep(1)
