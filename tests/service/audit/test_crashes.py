"""The service is killed while many write: whatever was acknowledged is there, and the chain is whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import sqlalchemy as sa

from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault
from tests.support.running_service import RunningService, running_service

KILLS, WRITERS, BEFORE_KILL = 3, 8, 25
QUESTION = {"model": "gpt2", "tp": 1}


def kill(service: RunningService) -> None:
    """SIGKILL to gunicorn's master and to its workers, which cannot say goodbye."""
    master = service.process.pid
    workers = [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]
    for pid in (master, *workers):
        os.kill(pid, signal.SIGKILL)
    service.process.wait(30)


@on_both_databases
def test_what_was_acknowledged_survives_kill_9(
    service_url: str, tmp_path: Path, open_database: Callable[[str], Database]
) -> None:
    acknowledged: list[tuple[str, int]] = []
    for _ in range(KILLS):
        target = len(acknowledged) + BEFORE_KILL
        enough = threading.Event()
        with running_service(service_url, tmp_path, TRAINMEM_LOG_LEVEL="error") as service:
            address = service.url

            def write(address: str = address, enough: threading.Event = enough, target: int = target) -> None:
                with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
                    try:
                        while True:
                            made = client.post("/api/v1/sizings", json=QUESTION)
                            assert made.status_code == 201, made.text
                            acknowledged.append((made.json()["id"], made.json()["audit"]["seq"]))
                            if len(acknowledged) >= target:
                                enough.set()
                    except httpx.TransportError:
                        enough.set()  # the service is gone: what was under way is not acknowledged

            writers = [threading.Thread(target=write) for _ in range(WRITERS)]
            for writer in writers:
                writer.start()
            assert enough.wait(120)
            kill(service)
            for writer in writers:
                writer.join(60)

    database = open_database(service_url)
    assert chain_fault(database) is None
    with database.reading() as session:
        kept = dict(
            session.execute(
                sa.text("SELECT s.id, e.seq FROM sizing s JOIN audit_entry e ON e.event_id = s.event_id")
            ).all()  # type: ignore[arg-type]
        )
    assert len(acknowledged) >= KILLS * BEFORE_KILL
    assert [kept.get(id) for id, _ in acknowledged] == [seq for _, seq in acknowledged]
    # At most one unacknowledged sizing for each writer that was cut off.
    assert len(kept) - len(acknowledged) <= KILLS * WRITERS
