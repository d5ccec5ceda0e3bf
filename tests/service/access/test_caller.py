"""Who is asking: an address, or whom a trusted address names; a refusal is recorded."""

from __future__ import annotations

import ipaddress

import pytest
from flask.testing import FlaskClient

from service.access.service import Caller, caller
from service.database import Database
from service.errors import Forbidden, MalformedBody
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, counts, entries

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@pytest.mark.parametrize(
    ("address", "header", "expected"),
    [
        ("127.0.0.1", None, Caller("address", "127.0.0.1")),
        ("192.0.2.7", None, Caller("address", "192.0.2.7")),
        (None, None, Caller("address", "unix")),
        ("127.0.0.1", "slack:T012/U345", Caller("slack", "U345", "T012")),
        ("::1", "slack:T012/U345", Caller("slack", "U345", "T012")),
        ("::ffff:127.0.0.1", "slurm:ann", Caller("slurm", "ann")),
        (None, "slurm:ann@cluster.example", Caller("slurm", "ann@cluster.example")),
    ],
)
def test_who_asks(address: str | None, header: str | None, expected: Caller) -> None:
    assert caller(address, header, LOOPBACK) == expected


def test_a_caller_reads_as_it_is_written() -> None:
    assert str(caller("127.0.0.1", "slack:T012/U345", LOOPBACK)) == "slack:T012/U345"
    assert str(caller("127.0.0.1", "slurm:ann", LOOPBACK)) == "slurm:ann"


def test_only_slack_has_a_way_in_of_its_own_so_far() -> None:
    assert (Caller("slack", "U1").via, Caller("slurm", "ann").via) == ("slack", "api")


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "not-an-address"])
def test_others_may_not_speak_for_others(address: str) -> None:
    with pytest.raises(Forbidden, match="may not act for others"):
        caller(address, "slack:T012/U345", LOOPBACK)


@pytest.mark.parametrize(
    "header", ["", "U345", "slack:", "slack:T/U/V", "slack:T 1/U", "SLACK:U1", "slack:U1\n", "s:" + "u" * 101]
)
def test_a_header_that_names_nobody(header: str) -> None:
    with pytest.raises(MalformedBody):
        caller("127.0.0.1", header, LOOPBACK)


@pytest.mark.parametrize("header", ["slack:U1\n", "s:" + "u" * 101, "s" * 33 + ":u"])
def test_a_header_that_is_hostile(header: str) -> None:
    with pytest.raises(MalformedBody):
        caller("127.0.0.1", header, LOOPBACK)


@on_both_databases
def test_a_refusal_is_recorded_and_nothing_else(client: FlaskClient, record: Database) -> None:
    refused = client.post(
        "/api/v1/sizings",
        json={"model": "gpt2", "tp": 1},
        headers={"Trainmem-On-Behalf-Of": "slack:T012/U345", "X-Request-Id": "r-7"},
        environ_base={"REMOTE_ADDR": "192.0.2.7"},
    )
    assert refused.status_code == 403
    assert counts(record)["sizing"] == 0
    entry = entries(record)[-1]
    assert (entry["action"], entry["outcome"], entry["subject"]) == ("sizing.denied", "refused", None)
    assert entry["actor"] == {"kind": "address", "id": "192.0.2.7", "team": None}
    assert entry["request_id"] == "r-7"
    assert chain_fault(record) is None


def test_without_the_header_anybody_may_ask(client: FlaskClient, record: Database) -> None:
    made = client.post("/api/v1/sizings", json={"model": "gpt2", "tp": 1}, environ_base={"REMOTE_ADDR": "192.0.2.7"})
    assert made.status_code == 201
    assert entries(record)[-1]["actor"]["id"] == "192.0.2.7"
