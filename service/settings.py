"""Every environment variable of the service: its name, type, default and meaning, in this one place."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.errors import SettingError
from service.scopes import SCOPES

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_CALLER = re.compile(r"[a-z][a-z0-9-]*:([A-Za-z0-9._-]+/)?[A-Za-z0-9._@+-]+")


def _text(value: str) -> str:
    return value


def _database_url(value: str) -> str:
    """`postgres://` and `postgresql://` name the driver that is installed; SQLite is `sqlite:///path`."""
    scheme, separator, rest = value.partition("://")
    if separator and scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        return f"postgresql+psycopg://{rest}"
    if separator and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return value
    raise ValueError("sqlite:///path/to/file.db or postgresql://user:password@host/name")


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not value.isascii() or not value.isdigit() or not least <= int(value[:20]) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(value)

    return read


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0.01 <= seconds <= 600:
        raise ValueError("a number of seconds from 0.01 to 600")
    return seconds


def _networks(value: str) -> tuple[Network, ...]:
    if value == "none":
        return ()
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in value.split(",") if part.strip())
    except ValueError as error:
        raise ValueError(
            f"addresses or networks with commas between, like 127.0.0.0/8,10.0.0.7, or none ({error})"
        ) from None


def _scopes(value: str) -> frozenset[str]:
    scopes = frozenset(_words(value))
    if not scopes <= set(SCOPES):
        raise ValueError(f"some of {', '.join(SCOPES)}, with commas between")
    return scopes


def _callers(value: str) -> frozenset[str]:
    names = _words(value)
    if not all(_CALLER.fullmatch(name) for name in names):
        raise ValueError("names like user:ann, slack:T012/U345 (a person) or slack:T012/S678 (a group), commas between")
    return frozenset(names)


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _origin(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", value):
        raise ValueError("1 to 100 letters, digits, '.', '_', '-' or '/'")
    return value


def _web_address(value: str) -> str:
    if value and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise ValueError("an address that begins with https:// or http://")
    return value


def _yes_or_no(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError("yes or no")
    return value == "yes"


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(" or ".join(allowed))
        return value

    return read


def _setting(name: str, read: Callable[[str], Any], default: str, meaning: str) -> Any:
    """A dataclass field that knows which variable it comes from; the default is written as one would type it."""
    metadata = {"variable": name, "read": read, "default": default, "meaning": meaning}
    return dataclasses.field(default_factory=lambda: read(default), metadata=metadata)


#: Settings that decide who may do what, and how the audit is kept.
_POLICY = {
    "trusted_addresses", "proxy_addresses", "people_scopes", "deciders", "administrators", "own_decisions",
    "rate_limit", "anonymous_rate_limit", "audit_origin", "verify_at_start",
}  # fmt: skip


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, frozenset)):
        return ",".join(sorted(map(str, value))) or "none"
    return str(value)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the service needs to know about where it runs. Every member has a default that works on a laptop."""

    database_url: str = _setting(
        "TRAINMEM_DATABASE_URL",
        _database_url,
        "sqlite:///var/trainmem.db",
        "Where sizings and the audit are kept: a SQLite file or a PostgreSQL database",
    )
    bind: str = _setting(
        "TRAINMEM_BIND",
        _text,
        "127.0.0.1:8080",
        "Address and port that gunicorn listens on; port 0 takes a free one",
    )
    public_url: str = _setting(
        "TRAINMEM_PUBLIC_URL",
        _text,
        "",
        "Address under which people reach the service, for links; empty takes the one of the request",
    )
    workers: int = _setting(
        "TRAINMEM_WORKERS", _whole_number(0, 256), "0", "gunicorn worker processes; 0 takes one per core plus one"
    )
    threads: int = _setting(
        "TRAINMEM_THREADS", _whole_number(1, 64), "4", "Threads of each worker, and so its database connections"
    )
    lock_timeout_s: float = _setting(
        "TRAINMEM_LOCK_TIMEOUT_S",
        _seconds,
        "10",
        "Seconds that a write waits for another one before the caller is told 503",
    )
    trusted_addresses: tuple[Network, ...] = _setting(
        "TRAINMEM_TRUSTED_ADDRESSES",
        _networks,
        "127.0.0.0/8,::1/128",
        "Addresses that need no token, and may name somebody else in Trainmem-On-Behalf-Of; none is none",
    )
    proxy_addresses: tuple[Network, ...] = _setting(
        "TRAINMEM_PROXY_ADDRESSES",
        _networks,
        "none",
        "Proxies that log people in and name them in X-Forwarded-User",
    )
    people_scopes: frozenset[str] = _setting(
        "TRAINMEM_PEOPLE_SCOPES", _scopes, "size,audit:read,observe", "What everybody may do whom a proxy names"
    )
    deciders: frozenset[str] = _setting(
        "TRAINMEM_DECIDERS",
        _callers,
        "",
        "People and Slack user groups who may decide: user:ann,slack:T012/U345,slack:T012/S678",
    )
    administrators: frozenset[str] = _setting(
        "TRAINMEM_ADMINISTRATORS", _callers, "", "People who may do everything: user:ann"
    )
    own_decisions: bool = _setting(
        "TRAINMEM_OWN_DECISIONS", _yes_or_no, "no", "Whether somebody may decide on what they asked for themselves"
    )
    rate_limit: int = _setting(
        "TRAINMEM_RATE_LIMIT", _whole_number(0, 1_000_000), "1200", "Requests a minute of one token or person; 0 is any"
    )
    anonymous_rate_limit: int = _setting(
        "TRAINMEM_ANONYMOUS_RATE_LIMIT",
        _whole_number(0, 1_000_000),
        "60",
        "Requests a minute of one address that has no token and is not trusted; 0 is any",
    )
    audit_key: str = _setting(
        "TRAINMEM_AUDIT_KEY",
        _text,
        "var/audit.key",
        "File of the key that signs checkpoints; made if there was none",
    )
    audit_origin: str = _setting(
        "TRAINMEM_AUDIT_ORIGIN",
        _origin,
        "trainmem/audit",
        "Name of this log in its checkpoints: a host and a path",
    )
    checkpoint_path: str = _setting(
        "TRAINMEM_CHECKPOINT_PATH",
        _text,
        "",
        "File that checkpoints are appended to, or directory that they are put into; best on other storage",
    )
    checkpoint_webhook_url: str = _setting(
        "TRAINMEM_CHECKPOINT_WEBHOOK_URL",
        _web_address,
        "",
        "Slack's incoming webhook of a channel that checkpoints are posted to",
    )
    checkpoint_every_s: float = _setting(
        "TRAINMEM_CHECKPOINT_EVERY_S", _seconds, "300", "Seconds between two rounds of trainmem keeper"
    )
    verify_at_start: bool = _setting(
        "TRAINMEM_VERIFY_AT_START",
        _yes_or_no,
        "yes",
        "Whether trainmem serve first verifies the whole audit",
    )
    log_level: str = _setting(
        "TRAINMEM_LOG_LEVEL", _choice("debug", "info", "warning", "error"), "info", "Least severity that is logged"
    )
    log_format: str = _setting(
        "TRAINMEM_LOG_FORMAT", _choice("auto", "json", "console"), "auto", "auto is console on a terminal, else json"
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the environment; an empty variable counts as not set.

        Raises SettingError naming every variable that cannot be read, so that one look is enough.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for member in dataclasses.fields(cls):
            name = member.metadata["variable"]
            if not (text := environ.get(name, "").strip()):
                continue
            try:
                values[member.name] = member.metadata["read"](text)
            except ValueError as error:
                shown = "(hidden)" if "URL" in name else repr(text)
                wrong.append(f"{name} is {shown}; allowed is {error}")
        if wrong:
            raise SettingError("\n".join(wrong))
        return cls(**values)

    def policy(self) -> dict[str, str]:
        """The settings that say who may do what, as text; they are recorded when they change."""
        named = {f.metadata["variable"]: getattr(self, f.name) for f in dataclasses.fields(self) if f.name in _POLICY}
        return {name: _written(value) for name, value in named.items()}

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """(variable, default, meaning) of every setting, in order: the table of docs/operations.md."""
        return [(f.metadata["variable"], f.metadata["default"], f.metadata["meaning"]) for f in dataclasses.fields(cls)]
