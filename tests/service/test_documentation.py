"""The documentation says what the code does, where the code can be asked."""

from __future__ import annotations

import re
from pathlib import Path

from flask import Flask

from service.audit import chain
from service.errors import problem_kinds
from service.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_every_setting_is_documented_as_it_is() -> None:
    rows = re.findall(r"^\| `(TRAINMEM_\w+)` \| (?:`(.*?)`)? ?\| (.*?) \|$", (DOCS / "operations.md").read_text(), re.M)
    assert rows == Settings.table()


def test_every_member_of_an_event_is_documented() -> None:
    text = (DOCS / "audit.md").read_text()
    assert [name for name in chain.MEMBERS if f"`{name}`" not in text] == []


def test_every_status_of_a_caller_is_documented() -> None:
    text = (DOCS / "http-api.md").read_text()
    rows = {int(status) for row in re.findall(r"^\| ([\d, ]+) \|", text, re.M) for status in row.split(",")}
    assert {status for status, *_ in problem_kinds()} - {500} <= rows


def test_every_path_of_the_api_is_documented(app: Flask) -> None:
    text = (DOCS / "http-api.md").read_text()
    rules = [rule.rule for rule in app.url_map.iter_rules() if "/api/v1/" in rule.rule]
    paths = {re.sub(r"<(?:[^:>]+:)?(\w+)>", r"{\1}", rule) for rule in rules}
    assert [path for path in paths if path.removeprefix("/api/v1") not in text] == []
