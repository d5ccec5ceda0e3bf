"""Many questions in one call: one answer each, each recorded by itself, and none sinks the rest."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
import structlog

from service.catalog.facts import Catalog
from service.database import Database
from service.errors import FieldError, InvalidInput, TrainmemError, Unavailable, Unexpected, problem_document
from service.requests.request import SizingRequest
from service.sizings.names import read_request
from service.sizings.service import Asking, create

MOST_GIVEN_LAYOUTS, MOST_RECOMMENDATIONS = 1_000, 50

_DEGREES = ("tp", "pp", "cp", "ep", "dp")
_LEFT_OPEN = (*_DEGREES, "shard", "recompute", "micro_batch")

log = structlog.get_logger(__name__)


def create_batch(database: Database, *, requests: Sequence[Any], catalog: Catalog, asking: Asking) -> Iterator[str]:
    """The JSON text of each answer in order: the recorded sizing, or {"error": problem document}.

    Raises InvalidInput, before anything is recorded, if there are more questions than one call may have.
    An Idempotency-Key counts for each question by its place, so a batch that broke off can be sent again.
    """
    loaded = [_load(request, catalog) for request in requests]
    _check_size(loaded)

    def answers() -> Iterator[str]:
        for place, request in enumerate(loaded):
            mine = replace(asking, key=f"{asking.key}#{place}") if asking.key else asking
            yield _answer(functools.partial(_create, database, request, catalog, mine), asking.request_id)

    return answers()


def asks_for_recommendation(request: SizingRequest) -> bool:
    """Whether a layout has to be searched for, which takes up to a second; a given one takes about a millisecond."""
    if all(getattr(request, degree) is None for degree in _DEGREES):
        return True
    several = isinstance(request.gpu, tuple) or request.gpu == "any"
    return several or request.solve is not None or any(getattr(request, key) == "auto" for key in _LEFT_OPEN)


def _unavailable() -> Unavailable:
    return Unavailable("The database does not answer; this one was not recorded. Send it again in a moment.")


def _load(request: Any, catalog: Catalog) -> SizingRequest | InvalidInput:
    try:
        return read_request(request, catalog)
    except InvalidInput as error:
        return error


def _check_size(loaded: Sequence[SizingRequest | InvalidInput]) -> None:
    searched = sum(isinstance(one, SizingRequest) and asks_for_recommendation(one) for one in loaded)
    wrong = []
    if not 1 <= len(loaded) <= MOST_GIVEN_LAYOUTS:
        detail = f"a batch has {len(loaded):,} requests"
        wrong.append(FieldError("/requests", detail, str(len(loaded)), f"1 to {MOST_GIVEN_LAYOUTS:,} requests"))
    if searched > MOST_RECOMMENDATIONS:
        detail = f"{searched:,} requests of the batch ask for a recommendation"
        allowed = f"at most {MOST_RECOMMENDATIONS} without a layout; give tp, pp, cp, ep or dp, or send several batches"
        wrong.append(FieldError("/requests", detail, str(searched), allowed))
    if wrong:
        raise InvalidInput(wrong)


def _create(database: Database, request: SizingRequest | InvalidInput, catalog: Catalog, asking: Asking) -> str:
    if isinstance(request, InvalidInput):
        raise request
    return create(database, request=request, catalog=catalog, asking=asking).document


def _answer(create_one: Callable[[], str], request_id: str) -> str:
    try:
        return create_one()
    except TrainmemError as error:
        problem = problem_document(error, request_id=request_id)
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError) as error:
        log.error("database_unavailable", error=str(error))
        problem = problem_document(_unavailable(), request_id=request_id)
    except Exception as error:  # a defect must not take the answers of the others with it
        log.error("unexpected_error", exc_info=error)
        detail = f"Something went wrong that should not have. The log has the cause under {request_id}."
        problem = problem_document(Unexpected(detail), request_id=request_id)
    return json.dumps({"error": problem}, ensure_ascii=False, separators=(",", ":"))
