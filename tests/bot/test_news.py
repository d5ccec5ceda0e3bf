"""Whoever asked in Slack hears what was decided: once, in order, wherever it was decided, over restarts too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.news import News, slack_user
from bot.service_client import ServiceClient
from bot.service_errors import ServiceError
from tests.support.fake_service import Asked, FakeService, Told, problem


def decision(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"dc_{number}",
        "sizing_id": f"sz_{number}",
        "decision": "approve",
        "gpus_granted": 16,
        "gpu": "h100-sxm5-80gb",
        "reason": None,
        "decided_by": "user:ann",
        "audit": {"seq": 50 + number},
        "sizing": {"id": f"sz_{number}", "requester": f"slack:T1/U{number}", "model": "llama-3.1-70b"},
        **more,
    }


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def open_news(service: FakeService, told: list[tuple[str, str]]) -> Iterator[Callable[[Path | None], News]]:
    opened: list[News] = []
    client = ServiceClient(base_url=service.url, timeout_s=2.0)

    def tell(user: str, message: Message) -> None:
        told.append((user, message.text))

    def make(state_dir: Path | None) -> News:
        opened.append(
            News(service=client, links=Links(None), tell=tell, every_s=0.01, state_dir=state_dir, name=str(service.url))
        )
        return opened[-1]

    yield make
    for news in opened:
        news.close()
    client.close()


def pages(service: FakeService, *items: dict[str, Any]) -> None:
    """All decisions at once, then none; the cursor is how many were seen."""

    def answer(asked: Asked) -> Told:
        seen = int(asked.query.get("cursor", "0"))
        return Told(200, {"items": list(items[seen:]), "next": str(len(items))})

    service.answers["GET /api/v1/decisions"] = answer


def test_everybody_concerned_is_told_in_order_and_once(
    service: FakeService, told: list[tuple[str, str]], open_news: Callable[[Path | None], News]
) -> None:
    pages(service, decision(1), decision(2, decision="reject", gpus_granted=None, gpu=None, reason="no room <!here>"))
    news = open_news(None)
    assert (news.look(), news.look()) == (2, 0)
    assert told == [
        ("U1", "✅ Approved by user:ann: 16 × h100-sxm5-80gb for llama-3.1-70b"),
        ("U2", "⛔ Rejected by user:ann: llama-3.1-70b\n&gt;no room &lt;!here&gt;"),
    ]
    assert service.asked[0].query["kind"] == "slack" and "since" in service.asked[0].query


@pytest.mark.parametrize(
    "about",
    [
        {"decided_by": "slack:T1/U1"},
        {"sizing": {"id": "sz_1", "requester": "token:slurm", "model": "x"}},
        {"sizing": {"id": "sz_1", "requester": "slack:T1/<!here>", "model": "x"}},
    ],
    ids=["their own", "a program's", "nobody's"],
)
def test_nobody_is_told_what_they_did_themselves_and_programs_are_not_told(
    service: FakeService, told: list[tuple[str, str]], open_news: Callable[[Path | None], News], about: dict[str, Any]
) -> None:
    pages(service, decision(1, **about))
    assert open_news(None).look() == 1
    assert told == []


def test_a_restart_goes_on_where_it_stopped(
    service: FakeService, told: list[tuple[str, str]], open_news: Callable[[Path | None], News], tmp_path: Path
) -> None:
    pages(service, decision(1))
    open_news(tmp_path).look()
    pages(service, decision(1), decision(2))
    open_news(tmp_path).look()
    assert [user for user, _ in told] == ["U1", "U2"]


def test_a_look_that_fails_loses_nothing(
    service: FakeService, told: list[tuple[str, str]], open_news: Callable[[Path | None], News]
) -> None:
    news = open_news(None)
    service.answers["GET /api/v1/decisions"] = problem(500, "broken")
    with pytest.raises(ServiceError):
        news.look()
    pages(service, decision(1))
    news.look()
    assert [user for user, _ in told] == ["U1"]


def test_of_two_processes_one_tells(service: FakeService, open_news: Callable[[Path | None], News]) -> None:
    first, second = open_news(None), open_news(None)
    assert (first._is_ours(), second._is_ours(), first._is_ours()) == (True, False, True)
    first.close()
    assert second._is_ours()


@pytest.mark.parametrize(
    ("requester", "user"),
    [("slack:T1/U1", "U1"), ("slack:U1", "U1"), ("user:ann", None), ("slack:T1/ann", None), ("slack:", None)],
)
def test_only_people_in_slack_can_be_told(requester: str, user: str | None) -> None:
    assert slack_user(requester) == user
