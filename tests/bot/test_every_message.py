"""Every message that the bot can make of a real answer is taken by Slack: random models, GPUs, recipes and layouts."""

from __future__ import annotations

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
from service.catalog.facts import packaged
from service.engine.errors import InvalidInput
from service.requests.schemas import load_request
from service.sizings.answer import answer
from tests.support.slack_block_kit import blocks_chars, problems

LINKS = Links("https://trainmem.example.org")
RECORDED = {"id": "sz_01jdz6q8w2x4y6m3k7", "recorded_at": "2026-11-30T20:52:07Z", "audit": {"seq": 42, "leaf": "00"}}
QUESTIONS = 60
RECOMMENDED = 2

SPACE: dict[str, list[Any]] = {
    "gpu": ["H100", "a100-80g", "MI300X", "T4", "B200", "L4", "H100 NVL"],
    "sequence_length": [None, 512, 4096, 32_768],
    "micro_batch": [None, 1, 8],
    "optimizer": [None, "adamw-8bit", "muon", "sgd", "paged-adamw"],
    "precision": [None, "fp8", "fp32", "bf16", "amp"],
    "method": [None, "lora", "qlora"],
    "stack": [None, "megatron"],
    "attention": [None, "eager"],
    "recompute": [None, "full", {"full_layers": 2}],
    "tp": [1, 2, 8],
    "pp": [None, 2],
    "dp": [None, 4],
    "offload": [None, ["optimizer"]],
    "tokens": [None, 10**12],
}


def questions() -> Iterator[dict[str, Any]]:
    """The same at every run; a few without a layout, since a recommendation takes a hundred times longer."""
    rng = random.Random(20261130)
    models = sorted(name for name, model in packaged().models.items() if model.supported and model.kind == "decoder-lm")
    for number in range(100_000):
        drawn = {key: rng.choice(values) for key, values in SPACE.items()}
        asked = {"model": rng.choice(models), **{key: value for key, value in drawn.items() if value is not None}}
        if number % (QUESTIONS // RECOMMENDED) == 0:
            asked = {key: value for key, value in asked.items() if key not in ("tp", "pp", "dp", "recompute")}
        yield asked


@pytest.fixture(scope="module")
def sizings() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for asked in questions():
        if len(found) == QUESTIONS:
            return found
        try:
            found.append({**RECORDED, **answer(load_request(asked), packaged())})
        except InvalidInput:
            continue  # a combination that cannot be; its message is tested with the errors
    raise AssertionError("the grid has too few questions that can be answered")


def refused(messages: Iterator[tuple[str, Message]]) -> list[str]:
    """Everything that Slack would say no to, in any form of any message."""
    return [
        f"{what}: {problem}"
        for what, message in messages
        for payload in message.payloads()
        for problem in (*problems(payload), *(["too many characters"] if blocks_chars(payload) > 13_000 else []))
    ]


def test_every_answer_is_taken_privately_shared_and_after_a_change(sizings: list[dict[str, Any]]) -> None:
    lead = ("*What if* *micro_batch 2 → 1*: 16 GPUs, 71.6 GiB → 32 GPUs, 42.5 GiB per GPU.", "sz_01jdz")
    made = (
        (str(sizing["request"]), message)
        for sizing in sizings
        for message in (
            sizing_message(sizing, LINKS),
            sizing_message(sizing, Links(None), lead=lead),
            sizing_message(sizing, LINKS, shared_by="U0USER"),
        )
    )
    assert refused(made) == []


def test_every_term_of_every_answer_can_be_explained(sizings: list[dict[str, Any]]) -> None:
    made = (
        (f"{term['term']} of {sizing['request']}", explanation_message(sizing, term["term"], LINKS))
        for sizing in sizings
        for term in sizing["per_gpu"]["terms"]
    )
    assert refused(made) == []


def test_every_answer_unfurls_and_every_question_fits_the_form(sizings: list[dict[str, Any]]) -> None:
    for sizing in sizings:
        assert problems({"text": "-", "blocks": unfurl_blocks(sizing, LINKS)}) == []
        request = request_of(sizing)
        assert can_be_changed(request)
        assert problems(form_view(request, {"response_url": "https://hooks.slack.com/x"}), "modal") == []


def test_a_comparison_of_as_many_gpus_as_can_be_named_is_taken() -> None:
    gpus = sorted(packaged().gpus)[:16]
    compared = {**RECORDED, **answer(load_request({"model": "8B", "gpu": gpus, "tp": 2}), packaged())}
    assert len(compared["comparison"]) > 10
    assert refused(iter([("comparison", comparison_message(compared, LINKS))])) == []
