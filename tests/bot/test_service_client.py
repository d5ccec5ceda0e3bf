"""The service fails in every way it can; the bot knows which, and waits no longer than it may."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import httpx
import pytest

from bot.asker import Asker
from bot.service_client import Call, ServiceClient
from bot.service_errors import Busy, Fault, NotFound, NotKnown, Refused, Rejected, ServiceError, TimedOut, Unreachable
from tests.support.fake_service import FakeService, Told, in_turn, problem, sizing

CALL = Call(asker=Asker("T1", "U1"), request_id="k7q2m9xw")
CREATED = Told(201, sizing())


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def client(service: FakeService, slept: list[float]) -> Iterator[ServiceClient]:
    made = ServiceClient(base_url=service.url, timeout_s=0.3, token="tmk_secret", sleep=slept.append)
    yield made
    made.close()


def create(client: ServiceClient) -> dict[str, object]:
    return client.create_sizing({"command": "70B"}, CALL, key="slack-1")


def test_a_call_says_for_whom_under_which_id_and_with_which_token(service: FakeService, client: ServiceClient) -> None:
    assert create(client)["id"] == sizing()["id"]
    [asked] = service.sizings_asked()
    assert asked.headers["trainmem-on-behalf-of"] == "slack:T1/U1"
    assert asked.headers["x-request-id"] == "k7q2m9xw"
    assert asked.headers["authorization"] == "Bearer tmk_secret"


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        (problem(400, "not JSON"), Rejected),
        (problem(401, "who are you"), NotKnown),
        (problem(403, "not you"), Refused),
        (problem(404, "unknown"), NotFound),
        (problem(409, "already"), Rejected),
        (problem(413, "too large"), Rejected),
        (problem(422, "wrong"), Rejected),
        (problem(429, "slow down", Retry_After="60"), Busy),
        (problem(500, "broken"), Fault),
        (problem(503, "later", Retry_After="60"), Busy),
        (Told(502, "<html>Bad gateway</html>"), Fault),
        (Told(404, "<html>nginx</html>"), Fault),
        (Told(201, "<html>a login page</html>"), Fault),
        (Told(201, ["a", "list"]), Fault),
    ],
)
def test_every_answer_becomes_its_own_kind_of_error(
    service: FakeService, client: ServiceClient, told: Told, kind: type[ServiceError]
) -> None:
    service.answers["POST /api/v1/sizings"] = told
    with pytest.raises(kind) as caught:
        create(client)
    assert type(caught.value) is kind
    assert "/api/v1/sizings" in caught.value.cause


def test_every_error_of_a_problem_document_is_kept(service: FakeService, client: ServiceClient) -> None:
    wrong = {"pointer": "/gpu", "detail": "no such GPU", "given": "H1000", "allowed": "a GPU", "suggestions": ["H100"]}
    service.answers["POST /api/v1/sizings"] = problem(422, "two things", wrong, {"pointer": "/tp", "detail": "odd"})
    with pytest.raises(Rejected) as caught:
        create(client)
    first, second = caught.value.errors
    assert (first.key, first.given, first.allowed, first.suggestions) == ("gpu", "H1000", "a GPU", ("H100",))
    assert (second.key, second.given, second.suggestions) == ("tp", None, ())


def test_a_broken_connection_is_tried_again_with_the_same_key(
    service: FakeService, client: ServiceClient, slept: list[float]
) -> None:
    reset = Told(0, None, reset=True)
    service.answers["POST /api/v1/sizings"] = in_turn(reset, reset, CREATED)
    assert create(client)["id"] == sizing()["id"]
    assert [asked.headers["idempotency-key"] for asked in service.sizings_asked()] == ["slack-1"] * 3
    assert slept == [0.2, 0.6]


def test_a_service_that_is_not_there_is_unreachable_after_three_attempts(slept: list[float]) -> None:
    client = ServiceClient(base_url="http://127.0.0.1:9", timeout_s=0.3, sleep=slept.append)
    with pytest.raises(Unreachable):
        create(client)
    assert len(slept) == 2
    assert not client.is_alive()


def test_a_slow_service_is_not_asked_again(service: FakeService, client: ServiceClient) -> None:
    never = Event()
    service.answers["POST /api/v1/sizings"] = Told(201, sizing(), wait_for=never)
    with pytest.raises(TimedOut) as caught:
        create(client)
    never.set()
    assert caught.value.timeout_s == 0.3
    assert len(service.sizings_asked()) == 1


def test_a_short_wait_that_the_service_asks_for_is_kept_and_a_long_one_is_told(
    service: FakeService, client: ServiceClient, slept: list[float]
) -> None:
    service.answers["POST /api/v1/sizings"] = in_turn(problem(503, "later", Retry_After="2"), CREATED)
    create(client)
    assert slept == [2.0]
    service.answers["POST /api/v1/sizings"] = problem(429, "slow down", Retry_After="60")
    with pytest.raises(Busy) as caught:
        create(client)
    assert caught.value.retry_after_s == 60.0 and slept == [2.0]


@pytest.mark.parametrize("told", [problem(422, "wrong"), problem(500, "broken"), problem(403, "no")])
def test_a_refusal_is_not_asked_again(service: FakeService, client: ServiceClient, told: Told) -> None:
    service.answers["POST /api/v1/sizings"] = told
    with pytest.raises(ServiceError):
        create(client)
    assert len(service.sizings_asked()) == 1


@pytest.mark.parametrize(
    ("ask", "path", "query"),
    [
        (lambda c: c.read_sizing("sz_1/../x", CALL), "/api/v1/sizings/sz_1%2F..%2Fx", {}),
        (lambda c: c.models("llama 70", CALL, limit=9), "/api/v1/models", {"q": "llama 70", "limit": "9"}),
        (lambda c: c.gpus("", CALL, limit=9), "/api/v1/gpus", {"limit": "9"}),
        (
            lambda c: c.sizings_of(CALL.asker, CALL, limit=5),
            "/api/v1/sizings",
            {"requester": "slack:T1/U1", "limit": "5"},
        ),
        (lambda c: c.estimate({"model": "70B"}, CALL), "/api/v1/estimate", {"model": "70B"}),
        (lambda c: c.decide("sz_1", {}, CALL, key="k"), "/api/v1/sizings/sz_1/decisions", {}),
        (lambda c: c.decisions_on("sz_1", CALL), "/api/v1/sizings/sz_1/decisions", {}),
        (lambda c: c.news({"kind": "slack"}, CALL), "/api/v1/decisions", {"kind": "slack"}),
    ],
)
def test_where_each_question_goes(ask: Callable[[ServiceClient], object], path: str, query: dict[str, str]) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"items": [{"id": "a"}], "next": None})

    client = ServiceClient(base_url="http://service", timeout_s=1, transport=httpx.MockTransport(answer))
    ask(client)
    client.close()
    assert seen[0].url.raw_path.decode().partition("?")[0] == path
    assert dict(seen[0].url.params) == query
