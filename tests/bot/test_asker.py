"""Whoever asks is named by workspace and user, on every surface, and nothing else gets into the header."""

from __future__ import annotations

from typing import Any

import pytest

from bot.asker import Asker


@pytest.mark.parametrize(
    ("body", "header"),
    [
        ({"team_id": "T1", "user_id": "U1"}, "slack:T1/U1"),
        ({"team": {"id": "T1"}, "user": {"id": "W1"}}, "slack:T1/W1"),
        ({"team_id": "T1", "event": {"user": "U1"}}, "slack:T1/U1"),
        ({"team": None, "enterprise": {"id": "E1"}, "user": {"id": "U1"}}, "slack:E1/U1"),
        ({"enterprise_id": "E1", "user_id": "U1"}, "slack:E1/U1"),
        ({"team_id": "T1\r\nX-Evil: 1", "user_id": "U/1"}, "slack:unknown/unknown"),
        ({}, "slack:unknown/unknown"),
    ],
)
def test_the_asker_of_a_payload(body: dict[str, Any], header: str) -> None:
    assert Asker.of(body).on_behalf_of == header


@pytest.mark.parametrize(
    ("body", "channel"),
    [
        ({"channel_id": "C1"}, "C1"),
        ({"channel": {"id": "D1"}}, "D1"),
        ({"event": {"channel": "C2"}}, "C2"),
        ({"channel_id": "C1\r\nX: 1"}, None),
        ({}, None),
    ],
)
def test_where_somebody_asked(body: dict[str, Any], channel: str | None) -> None:
    assert Asker.of(body).channel == channel
