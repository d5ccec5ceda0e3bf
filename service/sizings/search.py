"""Finding recorded sizings: newest first, page after page, each page as cheap as the first."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from service import cursors
from service.audit.service import timestamp
from service.sizings.models import Sizing

FILTERS = ("model", "gpu", "requester", "team", "verdict")

_COLUMNS = (
    Sizing.id, Sizing.recorded_at, Sizing.requester, Sizing.via, Sizing.model, Sizing.gpu, Sizing.gpus,
    Sizing.verdict, Sizing.verdict_text,
)  # fmt: skip


def search(
    session: Session,
    *,
    filters: Mapping[str, str],
    since: datetime.datetime | None = None,
    cursor: str | None = None,
    limit: int = 50,
) -> tuple[list[dict[str, Any]], str | None]:
    """A page of summaries and the cursor of the next one. Raises InvalidInput for a cursor that was not given out.

    `filters` are equalities on FILTERS. The place in the list is (recorded_at, id), so no page is skipped or counted.
    """
    query = sa.select(*_COLUMNS).order_by(Sizing.recorded_at.desc(), Sizing.id.desc()).limit(limit + 1)
    for name in FILTERS:
        if name in filters:
            query = query.where(getattr(Sizing, name) == filters[name])
    if since is not None:
        query = query.where(Sizing.recorded_at >= since)
    if cursor is not None:
        query = query.where(sa.tuple_(Sizing.recorded_at, Sizing.id) < sa.tuple_(*_place(cursor)))
    rows = session.execute(query).all()
    following = _cursor(rows[limit - 1]) if len(rows) > limit else None
    return _summaries(rows[:limit]), following


def _summaries(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.id,
            "recorded_at": timestamp(row.recorded_at),
            "requester": row.requester,
            "via": row.via,
            "model": {"id": row.model},
            "gpu": {"id": row.gpu},
            "per_gpu": {"gpus": row.gpus},
            "verdict": {"code": row.verdict, "text": row.verdict_text},
        }
        for row in rows
    ]


def _cursor(row: Any) -> str:
    return cursors.encode(round(row.recorded_at.timestamp() * 1_000_000), row.id)


def _place(cursor: str) -> tuple[sa.BindParameter[Any], sa.BindParameter[Any]]:
    microseconds, id = cursors.decode(cursor, int, str)
    try:
        at = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        raise cursors.unreadable(cursor) from None
    return sa.bindparam(None, at, Sizing.recorded_at.type), sa.bindparam(None, id, Sizing.id.type)
