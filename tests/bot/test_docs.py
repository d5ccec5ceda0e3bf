"""docs/slack.md names every permission, event, setting and word that there is, and shows pictures that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bot.permissions import SCOPES
from bot.replies import WORDS
from bot.settings import variables

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "slack.md").read_text(encoding="utf-8")
EVENTS = yaml.safe_load((ROOT / "bot" / "manifest.yaml").read_text(encoding="utf-8"))["settings"]["event_subscriptions"]


@pytest.mark.parametrize("name", [*variables(), *EVENTS["bot_events"], *WORDS])
def test_every_setting_event_and_word_is_described(name: str) -> None:
    assert re.search(rf"`[^`\n]*\b{re.escape(name)}\b", DOCS)


def test_every_permission_is_explained_as_the_check_explains_it() -> None:
    rows = {
        scope: use.replace("`", "") for scope, use in re.findall(r"^\| `([a-z_:]+)` \| (.+) \|$", DOCS, re.MULTILINE)
    }
    assert {scope: rows[scope] for scope in SCOPES} == SCOPES


def test_every_picture_and_every_linked_file_exists() -> None:
    linked = [target for target in re.findall(r"\]\(([^)#]+)\)", DOCS) if "://" not in target]
    assert len(linked) >= 5
    assert [target for target in linked if not (ROOT / "docs" / target).is_file()] == []
