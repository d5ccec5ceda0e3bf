"""The answer says the verdict first, every figure with its unit, what was assumed, and where it is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.sizing import sizing_message
from bot.blocks.table import Table
from tests.support.fake_service import sizing
from tests.support.slack_block_kit import problems

LINKS = Links("https://trainmem.example.org")


def shown(message: Message) -> str:
    return json.dumps(message.payload(), ensure_ascii=False)


def fields(message: Message) -> dict[str, str]:
    pairs = [field["text"] for part in message.parts if isinstance(part, dict) for field in part.get("fields", [])]
    return {text.partition("\n")[0].strip("*"): text.partition("\n")[2] for text in pairs}


def table(message: Message) -> Table:
    [found] = [part for part in message.parts if isinstance(part, Table)]
    return found


def too_small() -> dict[str, Any]:
    """The same run on eight GPUs, where it does not fit, with the nearest that does."""
    answer = sizing()
    answer["verdict"] = {"code": "does_not_fit", "text": "8 × H100 are not enough: 91 GiB are missing per GPU"}
    answer["recommendation"] = None
    answer["per_gpu"] |= {"gpus": 8, "nodes": 1, "headroom_bytes": -(91 * 2**30), "fits": False}
    answer["sharding_floor"] |= {"fits": False}
    answer["nearest_fit"] = {
        "change": {"sequence_length": 4096},
        "gpus": 32,
        "layout": answer["per_gpu"]["layout"],
        "peak_bytes": 40 * 2**30,
    }
    return answer


def test_the_verdict_comes_first_and_the_gpu_count_is_recommended() -> None:
    message = sizing_message(sizing(), LINKS)
    assert message.payload()["blocks"][0]["type"] == "header"
    assert message.text.startswith("Fits: 32 × H100 (4 nodes): 42 of 75 GiB per GPU at the loss")
    assert "*Recommended: 32 × NVIDIA H100 SXM 80 GB.* 16 are not enough" in shown(message)


def test_the_fields_hold_peak_headroom_layout_and_confidence() -> None:
    values = fields(sizing_message(sizing(), LINKS))
    assert values["Peak per GPU"] == "███████░░░░░\n42.5 GiB (45.6 GB) of 75.2 GiB (80.8 GB) usable, at the loss"
    assert values["Headroom"] == "32.8 GiB (35.2 GB)"
    assert values["Layout"] == "tp 8 · dp 4 · ZeRO-3 · full recompute"
    assert values["Confidence"] == "high: 40.3 GiB to 45.1 GiB in 8 of 10 runs"
    assert values["Speed"] == "6.4 s a step, 10,240 tokens/s"


def test_the_table_has_a_row_per_term_with_both_units() -> None:
    # 70,553,706,496 parameters × 2 B = 141.1 GB = 131.4 GiB; over 32 GPUs 4.4 GB = 4.1 GiB
    rows = table(sizing_message(sizing(), LINKS)).rows
    assert rows[0] == ("Weights", "131.4 GiB (141.1 GB)", "4.1 GiB (4.4 GB)", "10%", "parameters")
    assert [row[0] for row in rows] == [
        "Weights",
        "Gradients",
        "Master weights",
        "Optimizer moments",
        "Activations",
        "Working memory",
        "Runtime",
        "Total",
    ]
    assert rows[5][1] == "–"


def test_floor_assumptions_other_models_and_provenance_are_said() -> None:
    text = shown(sizing_message(sizing(), LINKS))
    assert "never goes below *10.1 GiB (10.8 GB)* per GPU" in text
    assert "*Assumed:* method full training · precision bf16-mixed" in text
    assert "*Note:* 70B was taken as llama-3.1-70b; llama-3.3-70b" in text
    assert "trainmem 0.1.0 · catalogue 3f2a91c0 · audit #41" in text
    assert "<https://trainmem.example.org/sizings/sz_01jdz5m3k7q8w2x4y6|sz_01jdz5m3k7q8w2x4y6>" in text


def test_what_was_asked_is_not_called_an_assumption() -> None:
    answer = sizing()
    answer["inputs"]["optimizer"]["from"] = "request"
    [assumed] = [part for part in shown(sizing_message(answer, LINKS)).split('"') if part.startswith("*Assumed:*")]
    assert "optimizer" not in assumed and "sequence" not in assumed


def test_a_run_that_does_not_fit_says_what_is_missing_and_what_would() -> None:
    message = sizing_message(too_small(), LINKS)
    text = shown(message)
    assert text.count("⛔") == 1
    assert message.text.startswith("Does not fit: 8 × H100")
    assert fields(message)["Missing per GPU"] == "91.0 GiB (97.7 GB)"
    assert "*Nearest that fits:* `seq=4096` on 32 × NVIDIA H100 SXM 80 GB" in text
    assert "more GPUs alone will not help" in text


def test_the_text_alone_says_everything_that_matters() -> None:
    text = sizing_message(too_small(), LINKS).text
    for words in (
        "Does not fit",
        "91.0 GiB",
        "tp 8",
        "Nearest that fits: seq=4096",
        "audit #41",
        "optimizer moments 16.4 GiB",
    ):
        assert words in text


@pytest.mark.parametrize("answer", [sizing(), sizing("sizing-70b-tight"), too_small()], ids=["fits", "tight", "not"])
def test_every_form_of_the_message_is_taken_by_slack(answer: dict[str, Any]) -> None:
    payloads = list(sizing_message(answer, LINKS).payloads(charts=False))
    assert [problems(payload) for payload in payloads] == [[], [], []]
    kinds = [[block["type"] for block in payload.get("blocks", [])] for payload in payloads]
    assert ["table" in kind for kind in kinds] == [True, False, False]
    assert "rich_text" in kinds[1] and kinds[2] == []


def test_the_pie_shows_what_fills_a_gpu_and_what_is_free() -> None:
    [chart] = [block for block in sizing_message(sizing(), LINKS).payload()["blocks"] if "chart" in block]
    points = {point["label"]: point["value"] for point in chart["chart"]["segments"]}
    # master weights 8.21 GiB and moments 16.43 GiB of 70,553,706,496 parameters over 32 GPUs
    assert points["Optimizer state"] == pytest.approx(12 * 70_553_706_496 / 32 / 2**30, abs=0.01)
    assert points["Free"] == pytest.approx(32.8, abs=0.05)
    assert len(points) == 6


def test_a_run_that_does_not_fit_has_no_pie() -> None:
    assert "data_visualization" not in shown(sizing_message(too_small(), LINKS))


def test_members_that_do_not_apply_are_null_and_leave_no_hole() -> None:
    answer = sizing() | {"time": None, "sharding_floor": None, "warnings": [], "audit": None, "id": None}
    text = shown(sizing_message(answer, Links(None)))
    assert "None" not in text and "not recorded" in text


def test_tight_is_explained() -> None:
    assert "the upper end of the range does not" in sizing_message(sizing("sizing-70b-tight"), LINKS).text


def test_days_and_cost_are_shown_when_tokens_were_given() -> None:
    answer = sizing()
    answer["time"] |= {"days": 12.25, "cost": {"usd": "28100.00", "price_date": "2026-09"}}
    assert fields(sizing_message(answer, LINKS))["Time and cost"] == "12.2 days, $28,100"


def test_names_from_outside_cannot_carry_markup() -> None:
    answer = sizing()
    answer["model"]["name"] = "<!channel> *x*"
    answer["warnings"] = [{"code": "x", "message": "<!everyone>"}]
    message = sizing_message(answer, LINKS)
    assert "<!" not in shown(message) and "<!" not in message.text


def test_a_verdict_longer_than_a_header_goes_on_below_it_clause_by_clause() -> None:
    answer = sizing("sizing-70b-tight")
    answer["gpu"]["name"] = "NVIDIA H100 SXM5 80GB"
    answer["verdict"]["text"] = answer["verdict"]["text"].replace("H100", "NVIDIA H100 SXM5 80GB")
    blocks = sizing_message(answer, LINKS).payload()["blocks"]
    assert blocks[0]["text"]["text"].endswith("71.6 of 75.2 GiB per GPU in the first backward operation")
    assert blocks[1]["text"]["text"] == "8 are not enough: 64.8 GiB too much, most of it optimizer moments"


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("1 × A10: 3.3 of 20.9 GiB per GPU at the loss, one GPU", "✅ 1 × A10: 3.3 of 20.9 GiB per GPU at the loss"),
        ("8 × H100: a, tp=8 cp=2, shard=parameters, recompute=full; b", "✅ 8 × H100: a; b"),
        (
            "8 × H100: a, dp=8; 64.9 GiB too much, most of it weights",
            "✅ 8 × H100: a; 64.9 GiB too much, most of it weights",
        ),
        ("any words, at all; more", "✅ any words, at all; more"),
    ],
)
def test_the_header_leaves_the_layout_to_its_field(verdict: str, title: str) -> None:
    answer = sizing()
    answer["verdict"] = {"code": "fits", "text": verdict}
    assert sizing_message(answer, LINKS).payload()["blocks"][0]["text"]["text"] == title


def test_a_verdict_of_one_endless_clause_is_said_whole_below_the_header() -> None:
    answer = sizing()
    answer["verdict"]["text"] = "word " * 60
    blocks = sizing_message(answer, LINKS).payload()["blocks"]
    assert len(blocks[0]["text"]["text"]) <= 150
    assert blocks[1]["text"]["text"].lower().count("word") == 60
