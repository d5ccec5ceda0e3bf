"""A small HTTP server on a free port of 127.0.0.1 for the fakes; it can break a connection instead of answering."""

from __future__ import annotations

import socket
import struct
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class LoopbackServer:
    """A context manager around `answer`: subclasses are given each request and write the response."""

    def __init__(self) -> None:
        fake = self

        class Handler(LoopbackHandler):
            def do_POST(self) -> None:
                fake.answer(self)

            do_GET = do_POST  # noqa: N815 (the name is http.server's)

        self._server = QuietServer(("127.0.0.1", 0), Handler)

    def answer(self, request: LoopbackHandler) -> None:
        """Reads the request and writes the response."""
        raise KeyError(request.path)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class LoopbackHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def reply(self, status: int, text: str, headers: dict[str, str]) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def break_off(self) -> None:
        """Closes with a reset, not with an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """What came in is kept by the fakes, not printed."""


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away, or a connection that was broken on purpose, is no news."""
