"""Whatever stands in a sizing (endless names, markup, huge and empty numbers, null members), Slack takes every form of
every message about it, and nothing in it becomes formatting.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from bot.blocks.comparison import comparison_message
from bot.blocks.explanation import explanation_message
from bot.blocks.form import can_be_changed, form_view
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.sizing import sizing_message
from bot.blocks.unfurl import unfurl_blocks
from bot.replies.question import request_of
from tests.support.fake_service import sizing
from tests.support.slack_block_kit import blocks_chars, problems

LINKS = Links("https://trainmem.example.org")
LEAD = ("*What if* *micro_batch 2 → 1*: 16 GPUs, 71.6 GiB → 32 GPUs, 42.5 GiB per GPU.", "sz_01jdz")
WORDS = ["<!channel>", "x" * 400, "🦙" * 90, "`*_~`", "a\u202eb\u0000c", "&lt;", "", "|", "<https://evil.example|bank>"]
SIZES = [0, 1, 999, 2**20, 2**30, 2**53 - 1, 10**15]
VARIATIONS = 500


def line(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "gpu": f"gpu-{number}",
        "gpus": rng.choice([1, 8, 10**6]),
        "layout": {"tp": 8, "dp": rng.choice([1, 10**5]), "shard": "parameters", "recompute": {"full_layers": 20}},
        "peak_bytes": rng.choice(SIZES),
        "headroom_bytes": rng.choice([-1, 1]) * rng.choice(SIZES),
        "fits": rng.choice([True, False]),
        "cost": rng.choice([None, {"usd": "123456789.99", "price_date": "2026-09"}]),
    }


def varied(seed: int) -> dict[str, Any]:
    """A sizing of the service with a few members turned hostile."""
    rng = random.Random(seed)
    made = copy.deepcopy(sizing(rng.choice(["sizing-70b-fits", "sizing-70b-tight"])))
    made["model"]["name"] = rng.choice([made["model"]["name"], *WORDS])
    made["gpu"]["name"] = rng.choice([made["gpu"]["name"], *WORDS])
    made["verdict"] = {
        "code": rng.choice(["fits", "tight", "does_not_fit", "new"]),
        "text": "; ".join(rng.choices([*WORDS, made["verdict"]["text"]], k=rng.randint(1, 5))),
    }
    made["warnings"] = [{"code": "x", "message": rng.choice(WORDS)} for _ in range(rng.choice([0, 1, 20]))]
    for name in ("recommendation", "sharding_floor", "time", "nearest_fit"):
        made[name] = None if rng.random() < 0.3 else made[name]
    if made["recommendation"]:
        made["recommendation"]["why"] = rng.choices(WORDS, k=rng.randint(0, 6))
    made["time"] = rng.choice([None, {"step_s": 1e-3, "tokens_per_s": 1e9, "days": 1e6, "cost": {"usd": "1e9"}}])
    made["levers"] = (made["levers"] * 20)[: rng.choice([0, 3, 120])]
    for lever in made["levers"]:
        lever["lever"] = rng.choice([lever["lever"], "y" * 300])
    for term in made["per_gpu"]["terms"]:
        term["bytes"] = rng.choice([term["bytes"], *SIZES])
        term["parts"] = (term["parts"] * 60)[: rng.choice([0, 1, 150])]
        term["because"] = rng.choice(WORDS)
    made["per_gpu"]["headroom_bytes"] = rng.choice([-1, 1]) * rng.choice(SIZES)
    made["comparison"] = [line(rng, number) for number in range(rng.choice([1, 16, 120]))]
    return made


def messages(answer: dict[str, Any]) -> Iterator[Message]:
    yield sizing_message(answer, LINKS)
    yield sizing_message(answer, Links(None), lead=LEAD)
    yield sizing_message(answer, LINKS, shared_by="U0USER")
    yield comparison_message(answer, LINKS)
    for term in answer["per_gpu"]["terms"]:
        yield explanation_message(answer, term["term"], LINKS)


@pytest.mark.parametrize("start", range(0, VARIATIONS, 50))
def test_every_form_of_every_message_is_taken(start: int) -> None:
    refused = [
        (seed, problem)
        for seed in range(start, start + 50)
        for message in messages(varied(seed))
        for payload in message.payloads()
        for problem in problems(payload)
    ]
    assert refused == []


@pytest.mark.parametrize("start", range(0, VARIATIONS, 100))
def test_every_link_unfurls_and_every_question_fits_the_form(start: int) -> None:
    for seed in range(start, start + 100):
        answer = varied(seed)
        assert problems({"text": "-", "blocks": unfurl_blocks(answer, LINKS)}) == []
        request = request_of(answer)
        assert can_be_changed(request)
        assert problems(form_view(request, {"response_url": "https://hooks.slack.com/x"}), "modal") == []


def test_nothing_from_outside_pings_anybody_or_becomes_a_link() -> None:
    for seed in range(VARIATIONS):
        for message in messages(varied(seed)):
            written = [text for text in formatted(message.payload()) if "<!" in text or "<https://evil" in text]
            assert written == []


def formatted(node: Any) -> list[str]:
    """Every text in which Slack looks for mentions and links."""
    if isinstance(node, list):
        return [text for item in node for text in formatted(item)]
    if not isinstance(node, dict):
        return []
    own = [node["text"]] if isinstance(node.get("text"), str) and node.get("type") in ("mrkdwn", None) else []
    return own + [text for item in node.values() for text in formatted(item)]


def test_a_usual_answer_is_well_below_what_a_posted_message_may_weigh() -> None:
    for name in ("sizing-70b-fits", "sizing-70b-tight"):
        assert blocks_chars(sizing_message(sizing(name), LINKS).payload()) < 10_000
