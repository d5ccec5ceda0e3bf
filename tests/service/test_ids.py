"""Identifiers sort by time and say what they name."""

from __future__ import annotations

import uuid

from service.ids import public_id, uuid7


def test_uuid7_is_the_one_of_rfc_9562() -> None:
    # RFC 9562, appendix A.6: unix_ts_ms 0x017F22E279B0, 2022-02-22 19:22:22 UTC.
    made = uuid7(at_ns=0x017F22E279B0 * 1_000_000)
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.hex.startswith("017f22e279b07")


def test_later_ids_sort_after_earlier_ones() -> None:
    made = [uuid7(at_ns=millisecond * 1_000_000) for millisecond in range(1_000, 1_100)]
    assert [str(one) for one in made] == sorted(str(one) for one in made)
    assert [public_id("sz", one) for one in made] == sorted(public_id("sz", one) for one in made)


def test_two_of_the_same_moment_differ() -> None:
    assert len({uuid7(at_ns=0) for _ in range(1_000)}) == 1_000


def test_a_public_id_is_crockfords_base_32() -> None:
    assert public_id("sz", uuid.UUID(int=0)) == "sz_" + "0" * 26
    assert public_id("sz", uuid.UUID(int=2**128 - 1)) == "sz_7" + "z" * 25
    assert public_id("sz", uuid.UUID(int=32 * 10 + 31)) == "sz_" + "0" * 24 + "az"
