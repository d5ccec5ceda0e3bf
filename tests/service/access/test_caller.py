"""Who is asking: a token, a person behind a proxy, somebody on this machine, or whom one of them speaks for."""

from __future__ import annotations

import datetime
import ipaddress

import pytest

from service.access.service import Caller, Identity, Refused, identify
from service.access.tokens import Token
from service.errors import Forbidden, MalformedBody, Unauthorized
from service.settings import Settings

NOW = datetime.datetime(2026, 12, 1, tzinfo=datetime.UTC)
SECRET = "tmk_" + "a" * 43
PROXY = (ipaddress.ip_network("10.0.0.1/32"),)


def token(**more: object) -> Token:
    known: dict[str, object] = {
        "id": "tok_1", "name": "slurm", "team": None, "scopes": frozenset({"size"}), "for_others": False,
        "created_at": NOW - datetime.timedelta(days=1), "expires_at": None,
    }  # fmt: skip
    return Token(**{**known, **more})  # type: ignore[arg-type]


def who(address: str | None, headers: dict[str, str], found: Token | None = None, **settings: object) -> Identity:
    return identify(
        address,
        headers,
        settings=Settings(**settings),  # type: ignore[arg-type]
        find_token=lambda secret: found if secret == SECRET else None,
        now=NOW,
    )


def refused(address: str | None, headers: dict[str, str], found: Token | None = None, **settings: object) -> Refused:
    with pytest.raises(Refused) as caught:
        who(address, headers, found, **settings)
    return caught.value


BEARER = {"Authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("address", "header", "expected"),
    [
        ("127.0.0.1", None, Caller("address", "127.0.0.1")),
        (None, None, Caller("address", "unix")),
        ("127.0.0.1", "slack:T012/U345", Caller("slack", "U345", "T012")),
        ("::1", "slack:T012/U345", Caller("slack", "U345", "T012")),
        ("::ffff:127.0.0.1", "slurm:ann", Caller("slurm", "ann")),
        (None, "slurm:ann@cluster.example", Caller("slurm", "ann@cluster.example")),
    ],
)
def test_who_is_on_this_machine_needs_no_token_and_may_name_others(
    address: str | None, header: str | None, expected: Caller
) -> None:
    found = who(address, {"Trainmem-On-Behalf-Of": header} if header else {})
    assert found.caller == expected and "admin" in found.scopes and found.limited_as is None


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "not-an-address"])
def test_from_elsewhere_a_token_is_needed(address: str) -> None:
    caught = refused(address, {})
    assert isinstance(caught.error, Unauthorized) and caught.error.headers["WWW-Authenticate"].startswith("Bearer")
    assert caught.who == Caller("address", address)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host"])
def test_a_proxy_on_this_machine_does_not_open_the_door(header: str) -> None:
    assert isinstance(refused("127.0.0.1", {header: "203.0.113.9"}).error, Unauthorized)
    assert isinstance(refused(None, {header: "203.0.113.9"}).error, Unauthorized)


def test_an_address_that_is_a_proxy_is_never_open() -> None:
    proxies = (ipaddress.ip_network("127.0.0.1/32"),)
    assert isinstance(refused("127.0.0.1", {}, proxy_addresses=proxies).error, Unauthorized)


def test_nobody_is_trusted_when_settings_say_none() -> None:
    settings = Settings.from_environ({"TRAINMEM_TRUSTED_ADDRESSES": "none"})
    with pytest.raises(Refused):
        identify("127.0.0.1", {}, settings=settings, find_token=lambda secret: None)


def test_a_token_is_its_name_and_has_its_scopes() -> None:
    found = who("192.0.2.7", BEARER, token(team="research", scopes=frozenset({"size", "observe"})))
    assert str(found.caller) == "token:research/slurm" and found.caller.token == "tok_1"
    assert found.scopes == {"size", "observe"} and found.limited_as == "tok_1"


def test_admin_has_every_scope() -> None:
    assert "audit:read" in who("192.0.2.7", BEARER, token(scopes=frozenset({"admin"}))).scopes


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"expires_at": NOW}, "expired on 2026-12-01 at 00:00 UTC"),
        ({"revoked_at": NOW}, "was revoked on 2026-12-01"),
        ({"expires_at": NOW - datetime.timedelta(days=1), "revoked_at": NOW}, "was revoked"),
    ],
)
def test_a_token_that_ended_is_refused_and_it_is_known_whose_it_was(more: dict[str, object], said: str) -> None:
    caught = refused("127.0.0.1", BEARER, token(**more))
    assert isinstance(caught.error, Unauthorized) and said in caught.error.detail
    assert caught.who.token == "tok_1"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer tmk_short", f"Basic {SECRET}", SECRET, f"Bearer {SECRET}x", "Bearer tmk_" + "ä" * 43],
)
def test_what_is_no_token_is_refused_even_on_this_machine(authorization: str) -> None:
    caught = refused("127.0.0.1", {"Authorization": authorization}, token())
    assert isinstance(caught.error, Unauthorized) and SECRET not in caught.error.detail


def test_only_a_token_for_others_may_name_others() -> None:
    headers = {**BEARER, "Trainmem-On-Behalf-Of": "slack:T012/U345", "Trainmem-Channel": "C678"}
    caught = refused("127.0.0.1", headers, token())
    assert isinstance(caught.error, Forbidden) and "may not act for others" in caught.error.detail

    found = who("192.0.2.7", headers, token(for_others=True))
    assert found.caller == Caller("slack", "U345", "T012", token="tok_1", channel="C678")
    assert found.acts_for_other and found.scopes == {"size"}


def test_groups_are_believed_of_whoever_may_speak_for_others() -> None:
    headers = {"Trainmem-On-Behalf-Of": "slack:T012/U345", "Trainmem-Groups": "slack:T012/S1, slack:T012/S2"}
    assert who("127.0.0.1", headers).groups == {"slack:T012/S1", "slack:T012/S2"}


def test_a_proxy_that_is_stated_names_people() -> None:
    found = who("10.0.0.1", {"X-Forwarded-User": "ann@example.org"}, proxy_addresses=PROXY)
    assert str(found.caller) == "user:ann@example.org"
    assert found.scopes == {"size", "audit:read", "observe"} and not found.may_act_for_others


def test_settings_name_who_decides_and_who_may_do_everything() -> None:
    people = {"deciders": frozenset({"user:ann"}), "administrators": frozenset({"user:eve"})}
    ann = who("10.0.0.1", {"X-Forwarded-User": "ann"}, proxy_addresses=PROXY, **people)
    eve = who("10.0.0.1", {"X-Forwarded-User": "eve"}, proxy_addresses=PROXY, **people)
    assert "decide" in ann.scopes and "admin" not in ann.scopes and "admin" in eve.scopes


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7", None])
def test_others_may_not_name_people(address: str | None) -> None:
    caught = refused(address, {"X-Forwarded-User": "ann"}, proxy_addresses=PROXY)
    assert isinstance(caught.error, Forbidden) and "may not say who asks" in caught.error.detail


@pytest.mark.parametrize("person", ["", "a b", "ann\r\nX: y", "a" * 101, "<script>", "ann,eve"])
def test_a_person_with_a_hostile_name(person: str) -> None:
    with pytest.raises(MalformedBody, match="X-Forwarded-User"):
        who("10.0.0.1", {"X-Forwarded-User": person}, proxy_addresses=PROXY)


@pytest.mark.parametrize(
    "header",
    ["", "U345", "slack:", "slack:T/U/V", "slack:T 1/U", "SLACK:U1", "slack:U1\n", "s:" + "u" * 101, "s" * 33 + ":u"],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7"])
def test_a_header_that_names_nobody(address: str, header: str) -> None:
    with pytest.raises(MalformedBody, match="Trainmem-On-Behalf-Of"):
        who(address, {"Trainmem-On-Behalf-Of": header})


def test_only_slack_has_a_way_in_of_its_own_so_far() -> None:
    assert (Caller("slack", "U1").via, Caller("slurm", "ann").via) == ("slack", "api")
