"""A repeated delivery is recognised for a while, in bounded memory."""

from __future__ import annotations

from bot.recent import Recent


def test_a_key_is_new_once() -> None:
    recent = Recent()
    assert [recent.is_new(key) for key in ("a", "b", "a", "", "")] == [True, True, False, True, True]


def test_the_oldest_is_forgotten() -> None:
    recent = Recent(most=2)
    assert [recent.is_new(key) for key in ("a", "b", "c", "b", "a")] == [True, True, True, False, True]
