"""Slack's end of Socket Mode on loopback: one WebSocket, envelopes out, acknowledgements in (RFC 6455, text frames)."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
from threading import Condition, Thread
from typing import Any, Self

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


class SlackSocket:
    """A context manager. `url` is what `apps.connections.open` should answer."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.closed_by_bot = False
        self._changed = Condition()
        self._connection: socket.socket | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listening.getsockname()[1]}/link"

    def __enter__(self) -> Self:
        Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        if self._connection is not None:
            self._connection.close()

    def command(self, envelope_id: str, form: dict[str, str]) -> None:
        """Sends a slash command in an envelope, once the bot is connected."""
        self.send(
            {"envelope_id": envelope_id, "type": "slash_commands", "payload": form, "accepts_response_payload": True}
        )

    def send(self, envelope: dict[str, Any]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._connection is not None, timeout=10)
        assert self._connection is not None
        self._connection.sendall(frame(TEXT, json.dumps(envelope).encode()))

    def acknowledgement(self, envelope_id: str) -> dict[str, Any]:
        """What the bot answered to an envelope, waiting for it."""
        with self._changed:
            assert self._changed.wait_for(lambda: envelope_id in self.acknowledged, timeout=10)
        return self.acknowledged[envelope_id]

    def wait_until_closed(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.closed_by_bot, timeout=10)

    def _serve(self) -> None:
        connection, _ = self._listening.accept()
        connection.sendall(handshake(read_head(connection)))
        connection.sendall(frame(TEXT, json.dumps({"type": "hello", "num_connections": 1}).encode()))
        with self._changed:
            self._connection = connection
            self._changed.notify_all()
        try:
            while self._take(connection):
                pass
        except OSError:
            self._note_closed()

    def _take(self, connection: socket.socket) -> bool:
        opcode, data = read_frame(connection)
        if opcode == PING:
            connection.sendall(frame(PONG, data))
        elif opcode == TEXT:
            answer = json.loads(data)
            with self._changed:
                self.acknowledged[answer["envelope_id"]] = answer
                self._changed.notify_all()
        elif opcode == CLOSE:
            self._note_closed()
            return False
        return True

    def _note_closed(self) -> None:
        with self._changed:
            self.closed_by_bot = True
            self._changed.notify_all()


def read_head(connection: socket.socket) -> dict[str, str]:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(connection, 1)
    lines = head.decode().split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def handshake(headers: dict[str, str]) -> bytes:
    accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + GUID).encode()).digest()).decode()
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    return ("\r\n".join([*lines, f"Sec-WebSocket-Accept: {accept}"]) + "\r\n\r\n").encode()


def frame(opcode: int, data: bytes) -> bytes:
    """An unmasked, unfragmented frame, as a server sends it."""
    size = len(data)
    length = bytes([size]) if size < 126 else b"\x7e" + struct.pack("!H", size)
    return bytes([0x80 | opcode]) + length + data


def read_frame(connection: socket.socket) -> tuple[int, bytes]:
    """A frame of a client: masked, of at most 64 KiB."""
    first, second = exactly(connection, 2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack("!H", exactly(connection, 2))
    mask = exactly(connection, 4) if second & 0x80 else bytes(4)
    data = exactly(connection, size)
    return first & 0x0F, bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the bot went away")
        data += more
    return data
