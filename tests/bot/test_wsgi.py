"""Nothing that is not Slack's gets in, and nothing that gets in makes a 500."""

from __future__ import annotations

import time

import pytest

from bot import limits
from tests.bot.conftest import Running
from tests.support.fake_service import FakeService
from tests.support.fake_slack import FakeSlack
from tests.support.slack_requests import SlackCaller, command_form, sign

FORM = "application/x-www-form-urlencoded"
GOOD_SIGNATURE_SHAPE = "v0=" + "0" * 64


@pytest.mark.parametrize(
    ("timestamp", "signature"),
    [
        ("garbage", GOOD_SIGNATURE_SHAPE),
        ("-1", GOOD_SIGNATURE_SHAPE),
        ("1e9", GOOD_SIGNATURE_SHAPE),
        ("9" * 400, GOOD_SIGNATURE_SHAPE),
        ("١٢٣", GOOD_SIGNATURE_SHAPE),
        ("1700000000", "v0=é" + "0" * 63),
        ("1700000000", "v1=" + "0" * 64),
        ("1700000000", "v0=" + "0" * 63),
        ("1700000000", ""),
        (None, GOOD_SIGNATURE_SHAPE),
        ("1700000000", None),
        (None, None),
    ],
)
def test_garbage_headers_are_refused_and_nothing_breaks(
    caller: SlackCaller, timestamp: str | None, signature: str | None
) -> None:
    headers = {"Content-Type": FORM, "X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": signature}
    sent = {name: value.encode("utf-8").decode("latin-1") for name, value in headers.items() if value is not None}
    assert caller.post(b"command=%2Ftrainmem", sent).status == 401


def test_a_wrong_secret_is_refused(running: Running, slack: FakeSlack, service: FakeService) -> None:
    stranger = SlackCaller(running.caller.url, "another-secret")
    assert stranger.command("70B", slack.response_url()).status == 401
    assert service.sizings_asked() == []


@pytest.mark.parametrize("age_s", [limits.SIGNATURE_AGE_S + 60, -(limits.SIGNATURE_AGE_S + 60)], ids=["old", "future"])
def test_a_signature_from_another_time_is_refused(caller: SlackCaller, slack: FakeSlack, age_s: int) -> None:
    form = f"command=%2Ftrainmem&response_url={slack.response_url()}".encode()
    assert caller.send_body(form, content_type=FORM, at_s=int(time.time()) - age_s).status == 401


def test_a_signature_within_five_minutes_is_taken(caller: SlackCaller, slack: FakeSlack) -> None:
    url = slack.response_url()
    form = f"command=%2Ftrainmem&text=help&team_id=T1&user_id=U1&response_url={url}".encode()
    assert caller.send_body(form, content_type=FORM, at_s=int(time.time()) - limits.SIGNATURE_AGE_S + 30).status == 200
    slack.message(url)


def test_a_changed_body_is_refused(running: Running, slack: FakeSlack) -> None:
    timestamp, body = str(int(time.time())), b"command=%2Ftrainmem&text=help"
    headers = {"Content-Type": FORM, "X-Slack-Request-Timestamp": timestamp}
    headers["X-Slack-Signature"] = sign(running.caller.secret, timestamp, body)
    assert running.caller.post(body + b"&x=1", headers).status == 401


def test_an_oversized_body_is_refused_before_it_is_read_by_anyone(caller: SlackCaller) -> None:
    body = b"text=" + b"x" * limits.REQUEST_BODY_BYTES
    assert caller.send_body(body, content_type=FORM).status == 413


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"payload=not-json", FORM),
        (b"payload=%5B%5D", FORM),
        (b"\xff\xfe\x00", FORM),
        (b"{broken", "application/json"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b"", "text/plain"),
        (b"command=%2Ftrainmem", FORM),
        (b"command=%2Fother&response_url=x", FORM),
    ],
)
def test_signed_nonsense_is_no_server_error(caller: SlackCaller, body: bytes, content_type: str) -> None:
    assert caller.send_body(body, content_type=content_type).status < 500


def test_slacks_certificate_check_and_url_verification_are_answered(caller: SlackCaller) -> None:
    assert caller.send({"ssl_check": "1", "token": "legacy"}).status == 200
    challenge = caller.send_body(b'{"type":"url_verification","challenge":"abc"}', content_type="application/json")
    assert (challenge.status, challenge.json()) == (200, {"challenge": "abc"})


def test_a_command_without_an_address_for_the_answer_is_no_server_error(caller: SlackCaller) -> None:
    form = command_form("70B", "x", "1.2.3")
    del form["response_url"]
    answer = caller.send(form)
    assert answer.status == 200
    assert "I failed on this" in answer.body


def test_health_is_the_process_and_readiness_is_the_service(running: Running, service: FakeService) -> None:
    client = running.wsgi.test_client()
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/readyz").status_code == 200
    del service.answers["GET /healthz"]
    unready = client.get("/readyz")
    assert (unready.status_code, unready.json) == (503, {"status": "unavailable", "service": "not reached"})


def test_other_paths_and_methods_are_refused_as_json(running: Running) -> None:
    client = running.wsgi.test_client()
    assert (client.get("/slack/events").status_code, client.get("/").status_code) == (405, 404)
    assert client.get("/").json == {"error": "Not Found"}
