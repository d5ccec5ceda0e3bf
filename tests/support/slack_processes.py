"""The real bot and the real service as processes of their own: gunicorn on a free port, output read line by line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Condition, Thread
from typing import Any, Self

TRAINMEM = [sys.executable, "-c", "from service.cli import main; main()"]
ADDRESS = re.compile(r"(?:Listening|is ready) at:? (http://127\.0\.0\.1:\d+)")


class TrainmemProcess:
    """`trainmem SUBCOMMAND`, a context manager; it sees the path, the loopback exception and `environment`."""

    def __init__(self, subcommand: str, environment: dict[str, str]) -> None:
        self._lines: list[str] = []
        self._changed = Condition()
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.process = subprocess.Popen(
            [*TRAINMEM, subcommand],
            env={**kept, "NO_PROXY": "127.0.0.1,localhost", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def url(self) -> str:
        """Where gunicorn listens; waits until it does."""
        return str(self.wait_for_line(lambda line: ADDRESS.search(line)).group(1))

    def wait_for_line(self, found: Callable[[str], Any], timeout_s: float = 30.0) -> Any:
        def search() -> Any:
            return next((hit for line in self._lines if (hit := found(line))), None)

        with self._changed:
            hit = self._changed.wait_for(search, timeout=timeout_s)
        assert hit, "not in the output:\n" + "".join(self._lines)
        return hit

    def terminate(self) -> int:
        """SIGTERM, as a container is stopped; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, timeout_s: float = 35.0) -> int:
        status = self.process.wait(timeout_s)
        self._reader.join(10)
        return status

    def log(self) -> list[dict[str, Any]]:
        """The entries of the log."""
        return [json.loads(line) for line in self._lines if line.startswith("{")]

    def text(self) -> str:
        return "".join(self._lines)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()


def bot_process(environment: dict[str, str]) -> TrainmemProcess:
    return TrainmemProcess("bot", {"TRAINMEM_BOT_BIND": "127.0.0.1:0", **environment})


def service_process(environment: dict[str, str]) -> TrainmemProcess:
    return TrainmemProcess("serve", {"TRAINMEM_BIND": "127.0.0.1:0", "TRAINMEM_WORKERS": "1", **environment})


def wait_until_bot_is_ready(process: TrainmemProcess) -> None:
    """Slack was asked who we are, so a worker has loaded the bot."""
    process.wait_for_line(lambda line: "slack_knows_us" in line or "slack_token_refused" in line)
