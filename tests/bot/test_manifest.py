"""The manifest and the code say the same: what Slack is told to send is handled, what the code uses is asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

import bot
from bot import listeners
from bot.permissions import SCOPES
from bot.wsgi import EVENTS_PATH

BOT = Path(bot.__file__).parent
MANIFEST = yaml.safe_load((BOT / "manifest.yaml").read_text(encoding="utf-8"))

#: Which permission each call and each event needs, from Slack's pages on the methods and events.
SCOPE_OF_CALL = {
    "apps_connections_open": None,  # with the app-level token, which has a scope of its own
    "auth_test": None,
    "chat_postEphemeral": "chat:write",
    "chat_postMessage": "chat:write",
    "chat_unfurl": "links:write",
    "files_upload_v2": "files:write",
    "views_open": None,
    "views_publish": None,
    "views_update": None,
}
SCOPE_OF_EVENT = {"app_home_opened": None, "app_mention": "app_mentions:read", "link_shared": "links:read"}


class Listening:
    """Stands for the Bolt app and notes what the code listens to."""

    def __init__(self) -> None:
        self.heard: dict[str, list[Any]] = {}

    def __getattr__(self, surface: str) -> Callable[[Any], Callable[[Any], Any]]:
        def listen(to: Any) -> Callable[[Any], Any]:
            self.heard.setdefault(surface, []).append(to)
            return lambda function: function

        return listen


@pytest.fixture(scope="module")
def heard() -> dict[str, list[Any]]:
    listening = Listening()
    listeners.register(listening, Mock(), Mock())  # type: ignore[arg-type]
    return listening.heard


def test_every_command_is_declared_and_every_declared_command_is_handled(heard: dict[str, list[Any]]) -> None:
    assert [command["command"] for command in MANIFEST["features"]["slash_commands"]] == heard["command"]


def test_every_event_is_subscribed_and_every_subscribed_event_is_handled(heard: dict[str, list[Any]]) -> None:
    subscribed = MANIFEST["settings"].get("event_subscriptions", {}).get("bot_events", [])
    assert sorted(subscribed) == sorted(heard.get("event", []))


def test_presses_and_forms_are_sent_exactly_when_something_handles_them(heard: dict[str, list[Any]]) -> None:
    handled = any(surface in heard for surface in ("action", "view", "options", "shortcut"))
    assert MANIFEST["settings"].get("interactivity", {}).get("is_enabled", False) is handled


def test_every_surface_that_the_code_listens_to_is_known_to_these_tests(heard: dict[str, list[Any]]) -> None:
    assert heard.keys() <= {"command", "event", "action", "view", "options"}


def test_the_permissions_are_exactly_those_that_the_code_uses(heard: dict[str, list[Any]]) -> None:
    needed = {SCOPE_OF_CALL[call] for call in api_calls()} | {SCOPE_OF_EVENT[event] for event in heard.get("event", [])}
    needed |= {"commands"} if "command" in heard else set()
    assert set(MANIFEST["oauth_config"]["scopes"]["bot"]) == needed - {None}


def test_every_permission_is_explained() -> None:
    assert list(SCOPES) == MANIFEST["oauth_config"]["scopes"]["bot"]


def api_calls() -> set[str]:
    """The Web API methods that the bot's source calls on a client."""
    names = set()
    for path in BOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.partition("_")[0] in API_FAMILIES and "_" in node.attr:
                names.add(node.attr)
    return names


API_FAMILIES = ("apps", "auth", "chat", "conversations", "files", "reactions", "users", "views", "workflows")


def test_links_are_unfurled_only_where_slack_is_told_which_domain_is_ours(heard: dict[str, list[Any]]) -> None:
    assert bool(MANIFEST["features"].get("unfurl_domains")) is ("link_shared" in heard["event"])


def test_slack_is_sent_to_the_path_that_the_bot_serves() -> None:
    urls = [command["url"] for command in MANIFEST["features"]["slash_commands"]]
    for part in MANIFEST["settings"].values():
        urls += [value for name, value in part.items() if name.endswith("_url")] if isinstance(part, dict) else []
    assert {url.partition("example.org")[2] for url in urls} == {EVENTS_PATH}


def test_texts_are_within_what_slack_takes_in_a_manifest() -> None:
    shown = MANIFEST["display_information"]
    assert len(shown["name"]) <= 35 and len(shown["description"]) <= 140
    assert 174 <= len(shown["long_description"]) <= 4000
    for command in MANIFEST["features"]["slash_commands"]:
        assert len(command["description"]) <= 2000 and len(command["usage_hint"]) <= 1000


def test_names_of_people_and_channels_reach_us_as_they_were_typed() -> None:
    assert all(command["should_escape"] is False for command in MANIFEST["features"]["slash_commands"])
