"""`trainmem bot check`: whether settings, tokens, permissions and the service are as the bot needs them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from bot.app import web_client
from bot.permissions import SCOPES
from bot.service_client import ServiceClient
from bot.settings import Settings, SettingsError


class Finding(NamedTuple):
    """One thing that was looked at, and what was found, in words for the person who sets the bot up."""

    good: bool
    words: str


def run(environment: Mapping[str, str] | None = None) -> int:
    """Prints a line for each finding. Exit status 0 when everything is well, 1 otherwise."""
    try:
        settings = Settings.from_environment(os.environ if environment is None else environment)
    except SettingsError as error:
        found = [Finding(False, problem) for problem in error.problems]
    else:
        found = list(findings(settings))
    for finding in found:
        print(f"{'ok     ' if finding.good else 'missing'}  {finding.words}")
    return 0 if all(finding.good for finding in found) else 1


def findings(settings: Settings) -> Iterator[Finding]:
    client = web_client(settings)
    yield from token(client, settings)
    if settings.transport == "socket":
        yield socket(client, settings)
    service = ServiceClient(base_url=settings.service_url, timeout_s=settings.service_timeout_s)
    alive = service.is_alive()
    service.close()
    yield Finding(alive, f"the sizing service {'answers' if alive else 'does not answer'} at {settings.service_url}")
    if settings.public_url is None:
        yield Finding(False, "TRAINMEM_PUBLIC_URL is not set: messages have no links to their sizings")


def token(client: WebClient, settings: Settings) -> Iterator[Finding]:
    """Who the token speaks for, and which permissions it lacks."""
    try:
        answer = client.auth_test(token=settings.bot_token)
    except SlackApiError as error:
        yield Finding(False, f"Slack refuses SLACK_BOT_TOKEN: {error.response.get('error')}")
        return
    except OSError as error:
        yield Finding(False, f"Slack cannot be reached at {settings.slack_api_url}: {error}")
        return
    yield Finding(True, f"SLACK_BOT_TOKEN speaks for {answer.get('user')} in {answer.get('team')}")
    granted = {scope.strip() for scope in str(answer.headers.get("x-oauth-scopes", "")).split(",")}
    for scope, use in SCOPES.items():
        yield Finding(scope in granted, f"permission {scope}: {use}")


def socket(client: WebClient, settings: Settings) -> Finding:
    try:
        client.apps_connections_open(app_token=settings.app_token or "")
    except SlackApiError as error:
        return Finding(False, f"Slack refuses SLACK_APP_TOKEN: {error.response.get('error')}")
    except OSError as error:
        return Finding(False, f"Slack cannot be reached at {settings.slack_api_url}: {error}")
    return Finding(True, "SLACK_APP_TOKEN opens a socket")
