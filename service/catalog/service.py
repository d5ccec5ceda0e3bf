"""The catalogue in the database: loaded from the package once, read into memory once for each content."""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service import __version__
from service.audit import service as audit
from service.catalog.facts import Catalog, GpuFact, ModelFact
from service.catalog.models import CatalogState, GpuAlias, GpuSku, ModelAlias, ModelArchitecture, PriceOffer
from service.database import Database, alone

#: The catalogue that the tables hold, and the packaged one that was last loaded into them.
CURRENT, PACKAGED = "current", "packaged"

CHECK_EVERY_S = 1.0


@dataclass(frozen=True)
class Release:
    """The actor of what a new release of the service does by itself."""

    kind: str = "service"
    id: str = "trainmem"
    team: str | None = None


def load(session: Session, catalog: Catalog) -> bool:
    """Put the packaged catalogue into the tables, with an audit entry. False, and no write, if it is there already."""
    alone(session.connection(), "catalog")
    found = session.execute(sa.select(CatalogState.name, CatalogState.digest)).all()
    states = {row.name: row.digest for row in found}
    if states.get(PACKAGED) == catalog.digest:
        return False
    for model in (PriceOffer, GpuAlias, ModelAlias, GpuSku, ModelArchitecture, CatalogState):
        session.execute(sa.delete(model.__table__))
    for table, rows in _rows(catalog):
        session.execute(sa.insert(table), list(rows))
    now = datetime.datetime.now(datetime.UTC)
    session.execute(
        sa.insert(CatalogState.__table__),
        [{"name": name, "digest": catalog.digest, "loaded_at": now} for name in (CURRENT, PACKAGED)],
    )
    audit.append(
        session,
        action="catalog.loaded",
        actor=Release(),
        via="service",
        subject=None,
        at=now,
        request={"previous": states.get(CURRENT)},
        result={"gpus": len(catalog.gpus), "models": len(catalog.models)},
        engine=__version__,
        catalog=catalog.digest,
    )
    return True


def read(session: Session) -> Catalog:
    """The catalogue that the tables hold."""
    gpus = session.execute(sa.select(GpuSku.facts).order_by(GpuSku.position)).scalars()
    models = session.execute(sa.select(ModelArchitecture.facts).order_by(ModelArchitecture.position)).scalars()
    return Catalog.from_rows([json.loads(facts) for facts in gpus], [json.loads(facts) for facts in models])


class Snapshot:
    """The catalogue in memory, immutable, and replaced when the digest in the database is another one.

    The digest is looked at once a second at most, so that a request costs no query.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._digest: str | None = None
        self._checked_s = 0.0

    def current(self) -> Catalog:
        """The catalogue to answer from."""
        if self._catalog is not None and time.monotonic() - self._checked_s < CHECK_EVERY_S:
            return self._catalog
        with self._lock, self._database.reading() as session:
            digest = session.execute(sa.select(CatalogState.digest).where(CatalogState.name == CURRENT)).scalar()
            if self._catalog is None or digest != self._digest:
                self._catalog, self._digest = read(session), digest
            self._checked_s = time.monotonic()
            return self._catalog


def search(facts: Mapping[str, GpuFact] | Mapping[str, ModelFact], words: str) -> list[Any]:
    """The facts one of whose spellings has every word, in catalogue order; case and punctuation do not count."""
    wanted = [_letters(word) for word in words.split()]

    def matches(name: str) -> bool:
        letters = _letters(name)
        return all(word in letters for word in wanted)

    return [fact for fact in facts.values() if any(map(matches, _spellings(fact)))]


def _spellings(fact: GpuFact | ModelFact) -> Iterator[str]:
    yield from (fact.id, fact.name, *fact.aliases)
    if isinstance(fact, ModelFact):
        yield from (fact.family, *fact.bare_sizes, *fact.repos)


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _rows(catalog: Catalog) -> Iterator[tuple[sa.Table, Iterable[dict[str, Any]]]]:
    gpus, models = list(catalog.gpus.values()), list(catalog.models.values())
    yield (
        GpuSku.__table__,
        (
            {
                "id": gpu.id,
                "position": position,
                "name": gpu.name,
                "vendor": gpu.vendor,
                "memory_bytes": gpu.memory_bytes,
                "facts": _json(gpu.row),
            }
            for position, gpu in enumerate(gpus)
        ),
    )
    yield GpuAlias.__table__, ({"alias": a, "sku_id": gpu.id} for gpu in gpus for a in dict.fromkeys(gpu.aliases))
    yield (
        PriceOffer.__table__,
        (
            {
                "sku_id": gpu.id,
                "position": position,
                "provider": offer.provider,
                "usd_per_gpu_hour": f"{offer.usd_per_gpu_hour:.4f}",
                "source": offer.source,
                "seen": offer.date,
            }
            for gpu in gpus
            for position, offer in enumerate(gpu.prices)
        ),
    )
    yield (
        ModelArchitecture.__table__,
        (
            {
                "id": model.id,
                "position": position,
                "name": model.name,
                "parameters": model.total,
                "facts": _json(model.row),
            }
            for position, model in enumerate(models)
        ),
    )
    yield (
        ModelAlias.__table__,
        (
            {"alias": alias, "model_id": model.id}
            for model in models
            for alias in dict.fromkeys((*model.aliases, *model.bare_sizes))
        ),
    )


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(dict(row), ensure_ascii=False, separators=(",", ":"))
