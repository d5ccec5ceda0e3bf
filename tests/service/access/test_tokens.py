"""Tokens: shown once, kept as a digest, never changed; giving out and revoking are audited."""

from __future__ import annotations

import datetime
import hashlib
import re

import pytest
import sqlalchemy as sa

from service.access import tokens
from service.access.service import Caller
from service.database import Database
from service.errors import InvalidInput, NotFound
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries

pytestmark = on_both_databases
OPERATOR = Caller("operator", "ann")


def create(database: Database, name: str = "slurm", **more: object) -> tuple[tokens.Token, str]:
    with database.writing() as session:
        return tokens.create(session, **{"name": name, "scopes": ["size"], "by": OPERATOR, **more})  # type: ignore[arg-type]


def test_a_token_is_recognisable_and_only_its_digest_is_kept(database: Database) -> None:
    made, secret = create(database, valid_for=datetime.timedelta(days=180))
    assert re.fullmatch(r"tmk_[A-Za-z0-9_-]{43}", secret)
    with database.reading() as session:
        [row] = session.execute(sa.text("SELECT * FROM api_token")).all()
        assert tokens.find(session, secret) == made
        assert tokens.find(session, secret[:-1] + ("A" if secret[-1] != "A" else "B")) is None
    assert bytes(row.digest) == hashlib.sha256(secret.encode()).digest()
    assert secret not in repr(row) and secret not in repr(entries(database))
    assert made.expires_at is not None and made.expires_at - made.created_at == datetime.timedelta(days=180)


def test_giving_out_and_revoking_are_entries(database: Database) -> None:
    made, secret = create(database, team="research", scopes=["observe", "size"], for_others=True)
    with database.writing() as session:
        ended = tokens.revoke(session, which="slurm", by=OPERATOR)
    created, revoked = entries(database)
    assert (created["action"], created["subject"]) == ("token.created", made.id)
    assert created["actor"] == {"kind": "operator", "id": "ann", "team": None}
    assert created["request"] == {
        "name": "slurm", "team": "research", "scopes": ["size", "observe"], "for_others": True, "expires_at": None,
    }  # fmt: skip
    assert (revoked["action"], revoked["subject"]) == ("token.revoked", made.id)
    assert [token.id for token in ended] == [made.id]
    with database.reading() as session:
        found = tokens.find(session, secret)
    assert found is not None and found.state(datetime.datetime.now(datetime.UTC)) == "revoked"
    assert chain_fault(database) is None


def test_a_name_ends_all_of_its_tokens_and_revoking_twice_does_nothing(database: Database) -> None:
    ids = [create(database)[0].id for _ in range(2)]
    with database.writing() as session:
        assert [token.id for token in tokens.revoke(session, which="slurm", by=OPERATOR)] == ids
    with database.writing() as session:
        assert tokens.revoke(session, which=ids[0], by=OPERATOR) == []
    assert len(entries(database)) == 4


def test_an_unknown_name_is_told_with_the_nearest(database: Database) -> None:
    create(database)
    with pytest.raises(NotFound, match="slurm"), database.writing() as session:
        tokens.revoke(session, which="slrum", by=OPERATOR)


@pytest.mark.parametrize(
    ("more", "pointers"),
    [
        ({"scopes": ["sise"]}, ["/scope"]),
        ({"scopes": []}, ["/scope"]),
        ({"name": "a b", "scopes": ["sise"], "team": "x/y"}, ["/scope", "/name", "/team"]),
        ({"name": "a" * 65}, ["/name"]),
        ({"name": "a\n"}, ["/name"]),
    ],
)
def test_a_bad_token_is_refused_with_all_that_is_wrong(
    database: Database, more: dict[str, object], pointers: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(database, **more)
    assert [error.pointer for error in refused.value.errors] == pointers
    assert entries(database) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE api_token SET scopes = 'admin'",
        "UPDATE api_token SET expires_at = NULL",
        "DELETE FROM api_token",
        "DELETE FROM api_token_revocation",
        "UPDATE api_token_revocation SET token_id = 'other'",
    ],
)
def test_neither_a_token_nor_its_end_can_be_changed(database: Database, statement: str) -> None:
    create(database)
    with database.writing() as session:
        tokens.revoke(session, which="slurm", by=OPERATOR)
    with pytest.raises(sa.exc.DBAPIError, match="is append-only"), database.writing() as session:
        session.execute(sa.text(statement))
