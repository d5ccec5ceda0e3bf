"""Every environment variable of the bot, once: its name, its type, its default and what it means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from urllib.parse import urlsplit

Transport = Literal["http", "socket"]


class SettingsError(Exception):
    """The environment cannot be used as it is; `problems` has a sentence for each variable that is wrong."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("an address such as https://trainmem.example.org")
    return text.rstrip("/")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000):
        raise ValueError("a whole number from 1 to 10000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 600:
        raise ValueError("seconds, above 0 and at most 600")
    return value


def _word(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return text.lower()

    return read


def _variable(name: str, meaning: str, default: Any = None, read: Callable[[str], Any] = str) -> Any:
    return field(default=default, metadata={"name": name, "meaning": meaning, "read": read})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the bot needs to know to run. Secrets are never shown by `repr`."""

    bot_token: str | None = _variable("SLACK_BOT_TOKEN", "the bot's token (xoxb-…) of a single workspace")
    signing_secret: str | None = _variable("SLACK_SIGNING_SECRET", "proves that an HTTP request comes from Slack")
    app_token: str | None = _variable("SLACK_APP_TOKEN", "app-level token (xapp-…) for Socket Mode")
    transport_asked: str = _variable(
        "TRAINMEM_BOT_TRANSPORT",
        "how Slack reaches the bot: http, socket, or auto (socket when SLACK_APP_TOKEN is set)",
        "auto",
        _word("auto", "http", "socket"),
    )
    bind: str = _variable(
        "TRAINMEM_BOT_BIND",
        "address and port of the bot's HTTP server; in Socket Mode of its health page",
        "127.0.0.1:3000",
    )
    workers: int = _variable("TRAINMEM_BOT_WORKERS", "gunicorn worker processes", 1, _count)
    threads: int = _variable("TRAINMEM_BOT_THREADS", "threads a worker takes requests with", 16, _count)
    answering: int = _variable("TRAINMEM_BOT_ANSWERING", "questions a worker answers at the same time", 8, _count)
    waiting: int = _variable(
        "TRAINMEM_BOT_WAITING",
        "questions that may wait in a worker; above it people are asked to come back",
        1000,
        _count,
    )
    service_url: str = _variable(
        "TRAINMEM_SERVICE_URL", "where the sizing service listens", "http://127.0.0.1:8080", _url
    )
    service_token: str | None = _variable("TRAINMEM_SERVICE_TOKEN", "API token the bot shows to the service")
    service_timeout_s: float = _variable(
        "TRAINMEM_SERVICE_TIMEOUT_S",
        "longest wait for one answer of the service; a comparison of many GPUs takes several seconds",
        20.0,
        _seconds,
    )
    news_every_s: float = _variable(
        "TRAINMEM_BOT_NEWS_S", "seconds between two looks for decisions that people should hear of", 15.0, _seconds
    )
    state_dir: str | None = _variable(
        "TRAINMEM_BOT_STATE", "directory for what the bot has told already; without it news begins at each start"
    )
    public_url: str | None = _variable(
        "TRAINMEM_PUBLIC_URL",
        "address of the service as people's browsers reach it; without it messages have no links",
        None,
        _url,
    )
    slack_api_url: str = _variable("TRAINMEM_SLACK_API_URL", "Slack's Web API", "https://slack.com/api", _url)
    log_level: str = _variable(
        "TRAINMEM_LOG_LEVEL", "debug, info, warning or error", "info", _word("debug", "info", "warning", "error")
    )

    @property
    def transport(self) -> Transport:
        if self.transport_asked == "auto":
            return "socket" if self.app_token else "http"
        return "socket" if self.transport_asked == "socket" else "http"

    def __repr__(self) -> str:
        return f"Settings(transport={self.transport!r}, bind={self.bind!r}, service_url={self.service_url!r})"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Reads and checks everything at once. An empty variable counts as absent. Raises SettingsError."""
        values: dict[str, Any] = {}
        problems: list[str] = []
        for item in fields(cls):
            name, text = item.metadata["name"], environment.get(item.metadata["name"], "").strip()
            if not text:
                continue
            try:
                values[item.name] = item.metadata["read"](text)
            except ValueError as error:
                problems.append(f"{name} is {text!r}; it has to be {error}.")
        settings = cls(**values)
        problems += settings._missing()
        if problems:
            raise SettingsError(problems)
        return settings

    def _missing(self) -> list[str]:
        needed = {"bot_token": self.bot_token}
        needed |= (
            {"app_token": self.app_token} if self.transport == "socket" else {"signing_secret": self.signing_secret}
        )
        return [f"{variable_name(key)} is not set: {meaning(key)}." for key, value in needed.items() if not value]


def variable_name(attribute: str) -> str:
    """The environment variable behind an attribute of Settings."""
    return next(str(item.metadata["name"]) for item in fields(Settings) if item.name == attribute)


def meaning(attribute: str) -> str:
    return next(str(item.metadata["meaning"]) for item in fields(Settings) if item.name == attribute)


def variables() -> tuple[str, ...]:
    """The names of all environment variables that the bot reads."""
    return tuple(str(item.metadata["name"]) for item in fields(Settings))
