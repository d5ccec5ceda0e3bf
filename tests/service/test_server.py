"""`trainmem serve` as an operator has it: real gunicorn, real signals, on a database that starts empty."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from service import server
from service.database import Database
from service.errors import SettingError
from service.settings import Settings
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts
from tests.support.running_service import running_service


@on_both_databases
def test_from_an_empty_database_to_a_recorded_sizing(empty_database_url: str, tmp_path: Path) -> None:
    with running_service(empty_database_url, tmp_path) as service, httpx.Client(base_url=service.url) as http:
        assert http.get("/readyz").json()["status"] == "ready"
        made = http.post("/api/v1/sizings", json={"command": "gpt2 tp=1 mb=2"})
        assert made.status_code == 201
        again = http.get(made.headers["Location"])
        assert again.content == made.content
        assert http.get("/").status_code == http.get("/docs").status_code == 200

        def ask(number: int) -> int:
            return http.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1, "micro_batch": number + 1}).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(ask, range(24))) == {201}
        assert service.stop(signal.SIGTERM) == 0
    assert not any("Traceback" in line for line in service.logged)
    with Database(Settings(database_url=empty_database_url)) as database:
        assert counts(database) == {"sizing": 25, "audit_entry": 27, "audit_text": 1, "idempotency_key": 0}
        assert chain_fault(database) is None


def test_the_example_it_prints_works(empty_database_url: str, tmp_path: Path) -> None:
    with running_service(empty_database_url, tmp_path) as service:
        example = service.printed[-1].removeprefix("Try: ").replace("70B seq=8k mb=2 gpu=H100", "gpt2 tp=1")
        _, url, _, content_type, _, body = shlex.split(example)
        name, _, value = content_type.partition(": ")
        answer = httpx.post(url, headers={name: value}, content=body)
    assert answer.status_code == 201
    assert answer.json()["model"]["id"] == "gpt2"


def test_a_running_request_is_finished_before_it_stops(empty_database_url: str, tmp_path: Path) -> None:
    body = b'{"model": "gpt2", "tp": 1}'
    with running_service(empty_database_url, tmp_path) as service:
        host, port = service.url.removeprefix("http://").split(":")
        connection = socket.create_connection((host, int(port)), timeout=30)
        with connection, connection.makefile("rb") as answer:
            head = f"POST /api/v1/sizings HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n".encode())
            assert answer.readline() == b"HTTP/1.1 100 Continue\r\n"  # a worker has it in hand
            answer.readline()
            service.process.send_signal(signal.SIGTERM)
            connection.sendall(body)
            assert answer.readline() == b"HTTP/1.1 201 CREATED\r\n"
        assert service.process.wait(30) == 0
    with Database(Settings(database_url=empty_database_url)) as database:
        assert counts(database)["sizing"] == 1
        assert chain_fault(database) is None


@on_both_databases
def test_migrating_says_what_it_did(empty_database_url: str) -> None:
    settings = Settings(database_url=empty_database_url)
    assert "catalogue loaded" in server.migrate(settings)
    assert "catalogue unchanged" in server.migrate(settings)


def test_a_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "WAIT_FOR_DATABASE_S", 0.0)
    with pytest.raises(SettingError, match=re.escape("u:***@127.0.0.1:1/nothing cannot be opened")) as refused:
        server.migrate(Settings(database_url="postgresql+psycopg://u:hunter2@127.0.0.1:1/nothing"))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"), [("TRAINMEM_DATABASE_URL", "sqlite:////proc/none/x.db"), ("TRAINMEM_THREADS", "many")]
)
def test_a_bad_setting_is_a_sentence_and_not_a_traceback(name: str, value: str, tmp_path: Path) -> None:
    start = [sys.executable, "-c", "from service.cli import main; main()", "serve"]
    ended = subprocess.run(start, env={**os.environ, name: value}, cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert name in ended.stderr and "Traceback" not in ended.stderr


def test_every_worker_has_connections_for_its_threads() -> None:
    options = server.gunicorn_options(Settings(threads=7, workers=3))
    assert (options["workers"], options["threads"], options["worker_class"]) == (3, 7, "gthread")
    database = Database(Settings(threads=7, database_url="sqlite:////nowhere/x.db"))
    assert database._pool_size == 7


def test_the_terminal_needs_neither_flask_nor_a_database() -> None:
    code = (
        "import sys; import service.sizings.answer, service.requests.schemas, service.catalog.facts, service.errors;"
        "print([name for name in ('flask', 'sqlalchemy', 'gunicorn', 'alembic') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
