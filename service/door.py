"""Who asks the current request, and what each view takes. Everybody may import this; `service.access` stands behind it.

A view says what it takes with `@needs("size")` or `@public`; under /api/ a view that says nothing takes `size`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from flask import current_app, g

from service.errors import ServiceError
from service.scopes import SCOPES

View = TypeVar("View", bound=Callable[..., Any])

GUARD = "trainmem_guard"
_WAYS_IN = {"slack": "slack"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Ids, no names: what kind of identity it is, the id, and the workspace or group that the id belongs to.

    `token` is the id of the API token that vouches for it, `channel` where in its workspace it asked.
    """

    kind: str
    id: str
    team: str | None = None
    token: str | None = None
    channel: str | None = None

    @property
    def via(self) -> str:
        """The way in that an audit entry names."""
        return _WAYS_IN.get(self.kind, "api")

    def __str__(self) -> str:
        return f"{self.kind}:{self.team}/{self.id}" if self.team else f"{self.kind}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A caller and what it may do. `limited_as` is the name under which its requests are counted; None is not."""

    caller: Caller
    scopes: frozenset[str]
    limited_as: str | None
    may_act_for_others: bool = False
    acts_for_other: bool = False
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Access:
    """What a view takes: one of `scopes`, none for anybody. `what` names the thing in an entry about a refusal."""

    scopes: tuple[str, ...] = ()
    what: str = "access"
    counted: bool = True


def needs(*scopes: str, what: str = "access") -> Callable[[View], View]:
    """Decorator of a view: the caller has one of these scopes."""
    if unknown := set(scopes) - set(SCOPES):
        raise ValueError(f"not scopes: {unknown}")
    return _marked(Access(scopes, what))


def public(view: View) -> View:
    """Decorator of a view: anybody may ask, though only so often."""
    return _marked(Access())(view)


def uncounted(view: View) -> View:
    """Decorator of a view that every probe may ask at any rate."""
    return _marked(Access(counted=False))(view)


def _marked(access: Access) -> Callable[[View], View]:
    def mark(view: View) -> View:
        view.access = access  # type: ignore[attr-defined]
        return view

    return mark


def identity() -> Identity:
    """Who asks the current request. Only for views that need a scope."""
    return cast(Identity, g.identity)


def current_caller() -> Caller:
    """The caller of the current request."""
    return identity().caller


def refuse(error: ServiceError, *, what: str) -> NoReturn:
    """Record that the current caller is refused by policy, and raise the error."""
    current_app.extensions[GUARD].refuse(current_caller(), error, what)
    raise AssertionError("a guard that refuses raises")
