"""A pasted link to a sizing shows five lines; everything else stays a bare link."""

from __future__ import annotations

from typing import Any

import pytest

from bot.blocks.links import Links
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService, Told, problem, sizing
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller

ID = "sz_01jdz6q8w2x4y6m3k7"
URL = f"https://trainmem.example.org/sizings/{ID}"
SHARED = {"type": "link_shared", "user": "U0USER", "channel": "C0CHANNEL", "message_ts": "12.34"}


def shared(*urls: str) -> dict[str, Any]:
    return {**SHARED, "links": [{"domain": "trainmem.example.org", "url": url} for url in urls]}


def test_a_link_unfurls_to_verdict_run_layout_peak_and_record(
    slack: FakeSlack, service: FakeService, caller: SlackCaller
) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = Told(200, sizing("sizing-70b-tight"))
    caller.event(shared(URL, "https://trainmem.example.org/docs"))
    slack.wait_for(lambda fake: fake.calls("chat.unfurl"))
    [unfurled] = slack.calls("chat.unfurl")
    assert (unfurled["channel"], unfurled["ts"]) == ("C0CHANNEL", "12.34")
    assert list(unfurled["unfurls"]) == [URL]
    section, context = unfurled["unfurls"][URL]["blocks"]
    assert len(section["text"]["text"].splitlines()) + len(context["elements"]) == 5
    assert section["text"]["text"].startswith("*⚠️ 16 × H100 (2 nodes): 71.6 of 75.2 GiB per GPU")


def test_a_sizing_that_cannot_be_read_stays_a_bare_link(
    slack: FakeSlack, service: FakeService, running: Running
) -> None:
    service.answers[f"GET /api/v1/sizings/{ID}"] = problem(404, "unknown")
    assert running.caller.event(shared(URL)).status == 200
    running.close()
    assert slack.calls("chat.unfurl") == []


@pytest.mark.parametrize(
    ("url", "identifier"),
    [
        (URL, ID),
        (f"{URL}?from=slack#terms", ID),
        (f"https://evil.example/sizings/{ID}", None),
        (f"https://trainmem.example.org.evil.example/sizings/{ID}", None),
        ("https://trainmem.example.org/sizings/../admin", None),
        ("https://trainmem.example.org/sizings/", None),
    ],
)
def test_only_our_own_addresses_name_a_sizing(url: str, identifier: str | None) -> None:
    assert Links("https://trainmem.example.org").sizing_in(url) == identifier
    assert Links(None).sizing_in(url) is None
