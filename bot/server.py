"""`trainmem bot`: the bot as a process, over HTTP by gunicorn or in Socket Mode."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot import logs
from bot.settings import Settings, SettingsError

EXIT_CONFIGURATION = 78
"""EX_CONFIG of sysexits.h: starting it again does not help."""

GRACEFUL_S = 30
"""How long a stopping worker may finish. What watches the process has to wait a little longer before it kills."""

DRAIN_S = 25.0


def run(environment: Mapping[str, str] | None = None) -> int:
    """Runs until it is told to stop; returns the exit status."""
    try:
        settings = Settings.from_environment(os.environ if environment is None else environment)
    except SettingsError as error:
        print("trainmem bot cannot start:", *error.problems, sep="\n  ", file=sys.stderr)
        return EXIT_CONFIGURATION
    logs.configure(settings.log_level)
    if settings.transport == "socket":
        from bot import socket_mode

        return socket_mode.run(settings)
    serve_http(settings)
    return 0


def serve_http(settings: Settings) -> None:
    """Does not return: gunicorn ends the process."""
    from flask import Flask
    from gunicorn.app.base import BaseApplication

    from bot.app import Bot, create_bot
    from bot.wsgi import create_wsgi

    class BotServer(BaseApplication):  # type: ignore[misc]
        """One Bolt app a worker, made after the fork: threads and connections do not survive one."""

        bot: Bot | None = None

        def load_config(self) -> None:
            for name, value in gunicorn_options(settings).items():
                self.cfg.set(name, value)
            self.cfg.set("worker_exit", self.drain)

        def load(self) -> Flask:
            self.bot = create_bot(settings)
            self.bot.news.start()
            return create_wsgi(self.bot)

        def drain(self, arbiter: Any, worker: Any) -> None:
            if self.bot is not None:
                self.bot.close(within_s=DRAIN_S)

    BotServer().run()


def gunicorn_options(settings: Settings) -> dict[str, Any]:
    return {
        "bind": settings.bind,
        "workers": settings.workers,
        "threads": settings.threads,
        "worker_class": "gthread",
        "timeout": 30,
        "graceful_timeout": GRACEFUL_S,
        "keepalive": 5,
        "control_socket_disable": True,
        "worker_tmp_dir": "/dev/shm" if Path("/dev/shm").is_dir() else None,
        "proc_name": "trainmem-bot",
    }
