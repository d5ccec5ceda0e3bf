"""The Merkle tree: the roots that everybody's RFC 6962 implementation gives, proofs that hold, and none that lie."""

from __future__ import annotations

import hashlib

import hypothesis
import pytest
from hypothesis import strategies as st

from service.audit.chain import leaf_hash
from service.audit.merkle import (
    Growing,
    consistency_proof,
    inclusion_proof,
    node_hash,
    root,
    subtree_in_tiles,
    verify_consistency,
    verify_inclusion,
)

# The leaves and roots that Certificate Transparency's implementations are tested with.
LEAVES = [bytes.fromhex(text) for text in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f",
)]  # fmt: skip
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


def leaves(count: int) -> list[bytes]:
    return [hashlib.sha256(b"%d" % number).digest() for number in range(count)]


def plain_root(found: list[bytes]) -> bytes:
    """MTH as RFC 9162 writes it, over leaf hashes."""
    if len(found) == 1:
        return found[0]
    split = 1
    while split * 2 < len(found):
        split *= 2
    return node_hash(plain_root(found[:split]), plain_root(found[split:]))


def tree_of(found: list[bytes]):  # type: ignore[no-untyped-def]
    """The tiles of a tree, and a way to ask them for subtrees."""
    tiles: dict[tuple[int, int], bytes] = {}
    growing = Growing(lambda level, index, hashes: tiles.__setitem__((level, index), hashes))
    growing.extend(found)
    tiles |= {(level, index): hashes for level, index, hashes in growing.unfinished()}
    return subtree_in_tiles(lambda level, index: tiles[level, index])


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_certificate_transparency(size: int) -> None:
    growing = Growing()
    growing.extend([leaf_hash(leaf) for leaf in LEAVES[:size]])
    assert growing.root().hex() == ROOTS[size - 1]


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 511, 512, 513, 1000, 65_537])
def test_tiles_and_growing_give_the_root_of_the_definition(size: int) -> None:
    found = leaves(size)
    growing = Growing()
    for start in range(0, size, 97):
        growing.extend(found[start : start + 97])
    assert growing.root() == plain_root(found) == root(size, tree_of(found))


@hypothesis.given(st.integers(1, 700), st.data())
def test_every_leaf_is_provable_and_nothing_else_is(size: int, data: st.DataObject) -> None:
    found = leaves(size)
    index = data.draw(st.integers(0, size - 1))
    proof = inclusion_proof(index, size, tree_of(found))
    tree = plain_root(found)
    assert verify_inclusion(index, size, found[index], proof, tree)
    assert not verify_inclusion(index, size, hashlib.sha256(b"another").digest(), proof, tree)
    assert not verify_inclusion(index, size, found[index], [*proof, tree], tree)
    assert not verify_inclusion(index, size, found[index], proof, found[index][::-1])
    assert not verify_inclusion(size, size, found[index], proof, tree)
    if proof:
        assert not verify_inclusion(index, size, found[index], proof[:-1], tree)
        assert not verify_inclusion(index ^ 1, size, found[index], proof, tree)


@hypothesis.given(st.integers(1, 700), st.data())
def test_a_beginning_is_provable_and_another_log_is_not(size: int, data: st.DataObject) -> None:
    found = leaves(size)
    first = data.draw(st.integers(1, size))
    proof = consistency_proof(first, size, tree_of(found))
    old, new = plain_root(found[:first]), plain_root(found)
    assert verify_consistency(first, size, proof, old, new)
    changed = [bytes(32), *found[1:first]]
    if first < size:
        assert not verify_consistency(first, size, proof, plain_root(changed), new)
        assert not verify_consistency(first, size, proof[:-1], old, new)
        assert not verify_consistency(first, size, proof, new, new)


def test_no_proof_is_about_nothing() -> None:
    subtree = tree_of(leaves(3))
    with pytest.raises(ValueError):
        inclusion_proof(3, 3, subtree)
    with pytest.raises(ValueError):
        consistency_proof(0, 3, subtree)
    assert not verify_consistency(0, 3, [], bytes(32), plain_root(leaves(3)))
    assert not verify_inclusion(0, 0, bytes(32), [], bytes(32))
