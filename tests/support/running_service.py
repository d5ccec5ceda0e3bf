"""The real service in a process of its own: gunicorn on a free port of the loopback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

START = "from service.server import serve; serve()"
READY = re.compile(r"ready at (http://\S+)")


@dataclass
class RunningService:
    """Where it listens and what it has printed; `stop` ends it as an operator would."""

    url: str
    process: subprocess.Popen[str]
    printed: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM, timeout_s: float = 30) -> int:
        """Send a signal and wait; gives the exit status."""
        self.process.send_signal(with_signal)
        return self.process.wait(timeout_s)


@contextmanager
def running_service(database_url: str, directory: Path, **environment: str) -> Iterator[RunningService]:
    """Start `trainmem serve` on a free port, give it when it is ready, stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", START],
        env={
            **os.environ,
            "TRAINMEM_DATABASE_URL": database_url,
            "TRAINMEM_BIND": "127.0.0.1:0",
            "TRAINMEM_WORKERS": "2",
            **environment,
        },
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    service = RunningService("", process)
    log = threading.Thread(target=service.logged.extend, args=(process.stderr,), daemon=True)
    log.start()
    try:
        for line in process.stdout:
            service.printed.append(line)
            if ready := READY.search(line):
                service.url = ready[1]
            if line.startswith("Try:"):
                break
        if not service.url:
            process.wait(30)
            log.join(30)
            raise AssertionError("the service did not start:\n" + "".join(service.printed + service.logged))
        yield service
    finally:
        if process.poll() is None:
            service.stop()
        log.join(30)
        process.stdout.close()
        process.stderr.close()
