"""JSON Lines: every line is answered, in order, each by itself, as soon as it was read."""

import io
import json
from typing import Any

import pytest

from service.terminal import batch

GIVEN = {"model": "8B", "gpu": "H100", "tp": 8, "micro_batch": 1}


def answered(*lines: str | bytes) -> list[dict[str, Any]]:
    source = io.BytesIO(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    target = io.StringIO()
    batch.answer_lines(source, target)
    return [json.loads(line) for line in target.getvalue().splitlines()]


def test_one_bad_line_does_not_sink_the_rest_and_order_is_kept() -> None:
    lines = [
        json.dumps(GIVEN | {"sequence_length": 1024}),
        "not json",
        '{"model": "8B", "model": "70B"}',
        '{"model": "8B", "margin": NaN}',
        '{"model": "no-such-model"}',
        '{"model": "8B", "tp": 3, "gpus": 8}',
        '{"command": "8B seq=2k gpu=H100 tp=8"}',
        '"8B"',
        b"\xff\xfe",
        json.dumps(GIVEN | {"sequence_length": 4096}),
    ]
    answers = answered(*lines)
    assert [answer.get("error", {}).get("status") for answer in answers] == [
        None, 400, 400, 400, 422, 422, None, 422, 400, None,
    ]  # fmt: skip
    lengths = [answers[place]["inputs"]["sequence_length"]["value"] for place in (0, 6, 9)]
    assert lengths == [1024, 2048, 4096]
    assert [error["pointer"] for error in answers[4]["error"]["errors"]] == ["/model"]
    assert [error["pointer"] for error in answers[5]["error"]["errors"]] == ["/tp"]


def test_an_answer_is_a_sizing_without_the_marks_of_a_record() -> None:
    (sizing,) = answered(json.dumps(GIVEN))
    assert sizing["request"] == GIVEN
    assert not {"id", "recorded_at", "audit"} & set(sizing)


def test_blank_lines_are_no_requests() -> None:
    assert len(answered("", json.dumps(GIVEN), "   ", json.dumps(GIVEN))) == 2


def test_a_line_longer_than_any_body_is_refused_without_being_kept() -> None:
    long = b'{"model": "' + b"x" * (3 * batch.LONGEST_LINE_BYTES) + b'"}'
    refused, fine = answered(long, json.dumps(GIVEN))
    assert refused["error"]["status"] == 413
    assert "error" not in fine


def test_a_defect_of_ours_is_told_for_its_line_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(request: object, catalog: object) -> dict[str, Any]:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(batch, "answer", broken)
    first, second = answered(json.dumps(GIVEN), '{"model": 7}')
    assert first["error"]["status"] == 500
    assert second["error"]["status"] == 422
    assert "ZeroDivisionError: boom" in capsys.readouterr().err
