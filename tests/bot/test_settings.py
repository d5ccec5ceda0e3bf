"""The environment is read once; everything wrong with it is said at once, by the name of the variable."""

from __future__ import annotations

import pytest

from bot.settings import Settings, SettingsError, variables

HTTP = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s3cret"}


def test_http_needs_a_token_and_a_signing_secret() -> None:
    settings = Settings.from_environment(HTTP)
    assert (settings.transport, settings.service_url, settings.bind) == (
        "http",
        "http://127.0.0.1:8080",
        "127.0.0.1:3000",
    )


def test_an_app_token_means_socket_mode_unless_http_is_asked() -> None:
    socket = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
    assert Settings.from_environment(socket).transport == "socket"
    assert Settings.from_environment({**HTTP, **socket, "TRAINMEM_BOT_TRANSPORT": "HTTP"}).transport == "http"


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({}, ["SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"]),
        ({"SLACK_BOT_TOKEN": "x", "TRAINMEM_BOT_TRANSPORT": "socket"}, ["SLACK_APP_TOKEN"]),
        ({**HTTP, "TRAINMEM_BOT_TRANSPORT": "pigeon"}, ["TRAINMEM_BOT_TRANSPORT"]),
        ({**HTTP, "TRAINMEM_SERVICE_URL": "service:8000"}, ["TRAINMEM_SERVICE_URL"]),
        (
            {**HTTP, "TRAINMEM_BOT_WORKERS": "-1", "TRAINMEM_BOT_THREADS": "٣"},
            ["TRAINMEM_BOT_WORKERS", "TRAINMEM_BOT_THREADS"],
        ),
        ({**HTTP, "TRAINMEM_SERVICE_TIMEOUT_S": "nan"}, ["TRAINMEM_SERVICE_TIMEOUT_S"]),
        (
            {"SLACK_BOT_TOKEN": " ", "SLACK_SIGNING_SECRET": "", "TRAINMEM_LOG_LEVEL": "loud"},
            ["TRAINMEM_LOG_LEVEL", "SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"],
        ),
    ],
)
def test_every_problem_is_named(environment: dict[str, str], named: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment(environment)
    assert [problem.split()[0] for problem in caught.value.problems] == named


def test_secrets_are_not_shown() -> None:
    assert "xoxb" not in repr(Settings.from_environment(HTTP)) and "s3cret" not in repr(Settings.from_environment(HTTP))


def test_our_own_variables_have_our_prefix() -> None:
    slack = {"SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN"}
    assert all(name.startswith("TRAINMEM_") for name in set(variables()) - slack)
