"""The packaged catalogue goes into the database once, and what comes out is what went in."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from service.catalog import service as catalog_service
from service.catalog.facts import Catalog, packaged
from service.catalog.service import Snapshot, load, read, search
from service.database import Database
from tests.support.databases import on_both_databases
from tests.support.record import chain_fault, entries


@on_both_databases
def test_what_is_read_is_what_was_loaded(database: Database) -> None:
    with database.writing() as session:
        assert load(session, packaged()) is True
    with database.reading() as session:
        kept = read(session)
        tables = {
            table: session.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()
            for table in ("gpu_sku", "gpu_alias", "price_offer", "model_architecture", "model_alias")
        }
    assert kept.digest == packaged().digest
    assert list(kept.gpus.values()) == list(packaged().gpus.values())
    assert list(kept.models.values()) == list(packaged().models.values())
    assert (tables["gpu_sku"], tables["model_architecture"]) == (100, 285)
    assert tables["price_offer"] == sum(len(gpu.prices) for gpu in packaged().gpus.values())
    assert tables["gpu_alias"] == sum(len(set(gpu.aliases)) for gpu in packaged().gpus.values())
    spellings = [{*model.aliases, *model.bare_sizes} for model in packaged().models.values()]
    assert tables["model_alias"] == sum(map(len, spellings))


@on_both_databases
def test_loading_again_writes_nothing(database: Database) -> None:
    with database.writing() as session:
        load(session, packaged())
    with database.writing() as session:
        assert load(session, packaged()) is False
    [entry] = entries(database)
    assert (entry["action"], entry["catalog"]) == ("catalog.loaded", packaged().digest)
    assert entry["result"] == {"gpus": 100, "models": 285}


@on_both_databases
def test_another_release_replaces_the_catalogue_and_says_so(database: Database) -> None:
    smaller = _without("h100-sxm5-80gb")
    with database.writing() as session:
        load(session, smaller)
    with database.writing() as session:
        assert load(session, packaged()) is True
    with database.reading() as session:
        assert read(session).digest == packaged().digest
    assert entries(database)[-1]["request"] == {"previous": smaller.digest}
    assert chain_fault(database) is None


@on_both_databases
def test_the_snapshot_follows_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_service, "CHECK_EVERY_S", 0.0)
    smaller = _without("h100-sxm5-80gb")
    snapshot = Snapshot(database)
    with database.writing() as session:
        load(session, smaller)
    first = snapshot.current()
    assert first.digest == smaller.digest
    assert snapshot.current() is first
    with database.writing() as session:
        load(session, packaged())
    assert snapshot.current().digest == packaged().digest


def test_a_request_costs_no_query_within_a_second(database: Database) -> None:
    with database.writing() as session:
        load(session, packaged())
    snapshot = Snapshot(database)
    snapshot.current()
    statements: list[str] = []
    sa.event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    for _ in range(100):
        snapshot.current()
    assert statements == []


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("h100 sxm", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("mi300x", "mi300x"),
    ],
)
def test_gpus_are_found_by_any_spelling(words: str, first: str) -> None:
    assert search(packaged().gpus, words)[0].id == first


@pytest.mark.parametrize(
    ("words", "among"),
    [("llama 3.1 70", "llama-3.1-70b"), ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"), ("QWEN2.5-7B", "qwen2.5-7b")],
)
def test_models_are_found_by_any_spelling(words: str, among: str) -> None:
    assert among in [model.id for model in search(packaged().models, words)]


def test_nothing_is_found_by_nonsense() -> None:
    assert search(packaged().gpus, "no such gpu") == []


def _without(gpu: str) -> Catalog:
    rows = [json.loads(json.dumps(fact.row)) for fact in packaged().gpus.values() if fact.id != gpu]
    return Catalog.from_rows(rows, [fact.row for fact in packaged().models.values()])
