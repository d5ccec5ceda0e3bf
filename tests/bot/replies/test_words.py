"""The words behind the command: lists, history, comparison, explanation. Anything else is a run to be sized."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.asker import Asker
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.table import Table
from bot.replies import WORDS, Replies
from bot.replies.explanation import term_called
from bot.replies.question import Question, Sources
from bot.service_client import ServiceClient
from tests.support.fake_service import FakeService, Told, sizing
from tests.support.slack_block_kit import problems

ID = "sz_01jdz6q8w2x4y6m3k7"
SUMMARY = {
    "id": ID,
    "recorded_at": "2026-11-30T20:52:07.000321Z",
    "model": {"id": "llama-3.1-70b"},
    "gpu": {"id": "h100"},
    "verdict": {"code": "does_not_fit", "text": "8 × H100 do not hold it; 64.8 GiB too much"},
}
MODELS = [
    {
        "id": "llama-3.1-70b",
        "parameters": 70_553_706_496,
        "max_positions": 131_072,
        "bare_sizes": ["70B"],
        "supported": True,
    },
    {"id": "mamba-3b", "parameters": None, "max_positions": None, "bare_sizes": [], "supported": False},
]
GPUS = [
    {
        "id": "h100",
        "memory_bytes": 85_028_896_768,
        "architecture": "Hopper",
        "gpus_per_node": 8,
        "price_per_hour": {"usd": "3.24"},
    },
    {
        "id": "mi300a",
        "memory_bytes": None,
        "label_gb": 128,
        "architecture": "CDNA3",
        "gpus_per_node": 4,
        "price_per_hour": None,
    },
]


@pytest.fixture
def replies(service: FakeService) -> Iterator[Replies]:
    service.answers |= {
        "GET /api/v1/models": Told(200, {"items": MODELS, "next": None}),
        "GET /api/v1/gpus": Told(200, {"items": GPUS, "next": None}),
        "GET /api/v1/sizings": Told(200, {"items": [SUMMARY], "next": None}),
        f"GET /api/v1/sizings/{ID}": Told(200, sizing("sizing-70b-tight")),
    }
    client = ServiceClient(base_url=service.url, timeout_s=2.0)
    yield Replies(Sources(client, Links("https://trainmem.example.org")))
    client.close()


def ask(replies: Replies, text: str) -> Message:
    message = replies.to_words(Question(text=text, asker=Asker("T1", "U1"), key="slack-1", request_id="k7q2m9xw"))
    assert [problem for payload in message.payloads() for problem in problems(payload)] == []
    return message


def rows(message: Message) -> tuple[tuple[str, ...], ...]:
    [table] = [part for part in message.parts if isinstance(part, Table)]
    return table.rows


def test_models_are_listed_with_what_a_bare_size_takes(service: FakeService, replies: Replies) -> None:
    message = ask(replies, "models llama 70")
    assert service.asked[-1].query["q"] == "llama 70"
    assert rows(message) == (("llama-3.1-70b", "70.6 B", "131,072", "70B"), ("mamba-3b", "–", "–", "totals only"))


def test_gpus_are_listed_with_memory_as_the_driver_says_or_by_their_label(replies: Replies) -> None:
    assert rows(ask(replies, "GPUS")) == (
        ("h100", "79.2 GiB (85.0 GB)", "Hopper", "8", "$3.24"),
        ("mi300a", "128 GB by its label", "CDNA3", "4", "–"),
    )


def test_a_long_list_is_cut_and_says_that_more_match(service: FakeService, replies: Replies) -> None:
    service.answers["GET /api/v1/models"] = Told(200, {"items": MODELS[:1] * 41, "next": "more"})
    message = ask(replies, "models")
    assert len(rows(message)) == 40
    assert "More match than these 40." in str(message.payload())


def test_a_filter_that_finds_nothing_says_so(service: FakeService, replies: Replies) -> None:
    service.answers["GET /api/v1/gpus"] = Told(200, {"items": [], "next": None})
    assert ask(replies, "gpus <!here>").text == "Nothing is called &lt;!here&gt;."


def test_last_lists_the_askers_own_sizings(service: FakeService, replies: Replies) -> None:
    assert "⛔ *llama-3.1-70b* 8 × H100 do not hold it\\n2026-11-30 20:52 UTC" in repr(ask(replies, "last").payload())
    assert service.asked[-1].query == {"requester": "slack:T1/U1", "limit": "5"}
    service.answers["GET /api/v1/sizings"] = Told(200, {"items": [], "next": None})
    assert "You have not sized anything yet" in ask(replies, "last").text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("explain activations", "Activations: 1.8 GiB (1.9 GB) per GPU, 2%"),
        ("explain moments", "Optimizer moments: 32.9 GiB (35.3 GB) per GPU, 44%"),
        ("explain", "Optimizer moments: 32.9 GiB (35.3 GB) per GPU, 44%"),
        (f"why {ID}", "Optimizer moments: 32.9 GiB (35.3 GB) per GPU, 44%"),
        (f"explain {ID} working", "Working memory: 1.3 GiB (1.3 GB) per GPU, 2%"),
    ],
)
def test_a_term_is_explained_by_its_parts(replies: Replies, text: str, title: str) -> None:
    message = ask(replies, text)
    assert message.text.startswith(title)
    assert rows(message)


def test_the_parts_of_a_term_make_up_the_term(replies: Replies) -> None:
    assert rows(ask(replies, "explain activations"))[0] == (
        "layer input",
        "1.2 GiB (1.3 GB)",
        "71%",
        "b·s × h × 2 B × 80",
    )


def test_a_term_that_nobody_knows_is_answered_with_those_that_exist(replies: Replies) -> None:
    assert ask(replies, "explain kv-cache").text.startswith("I can explain weights, gradients")


@pytest.mark.parametrize(
    ("words", "term"),
    [
        ("weights", "weights"),
        ("optimizer_moments", "optimizer_moments"),
        ("master", "master_weights"),
        ("", None),
        ("w", "weights"),
    ],
)
def test_terms_are_found_by_key_name_or_beginning(words: str, term: str | None) -> None:
    assert term_called(words) == term


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("compare H100,B200 70B seq=8k", "70B seq=8k gpu=H100,B200"),
        ("compare 70B seq=8k", "70B seq=8k gpu=A100-80G,H100,H200,B200,MI300X,MI355X"),
    ],
)
def test_compare_names_gpus_or_takes_the_usual_ones(
    service: FakeService, replies: Replies, text: str, command: str
) -> None:
    ask(replies, text)
    assert service.sizings_asked()[0].body == {"command": command}


def test_every_word_of_the_help_is_known_and_every_known_word_is_in_the_help(replies: Replies) -> None:
    shown = str(ask(replies, "help").payload())
    assert all(f"/trainmem {word}" in shown for word in WORDS)
