"""The guard at the door: before a view runs, who asks is known and may do it. Refusals are recorded."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from flask import Flask, current_app, g, request

from service.access import tokens
from service.access.rate_limit import RateLimit
from service.access.service import FORWARDED_USER, Refused, by_address, identify
from service.audit import service as audit
from service.database import Database
from service.door import GUARD, Access, Caller, Identity
from service.errors import Forbidden, ServiceError, TooManyRequests
from service.http import is_api, request_id
from service.settings import Settings

CHECK_EVERY_S = 1.0
_MOST_KEPT = 4096


def attach(app: Flask, settings: Settings, database: Database) -> None:
    """Put the guard in front of every view of `app`."""
    app.extensions[GUARD] = Guard(settings, database)
    app.before_request(_check)


def access_of(app: Flask, endpoint: str | None) -> Access:
    """What the view of an endpoint takes."""
    view = app.view_functions.get(endpoint or "")
    stated = getattr(view, "access", None)
    if stated is not None:
        return cast(Access, stated)
    return Access(("size",)) if is_api() else Access(counted=False)


def _check() -> None:
    if request.routing_exception is not None:
        return  # 404 and 405 say more, and show nothing
    cast(Guard, current_app.extensions[GUARD]).check(access_of(current_app, request.endpoint))


@dataclass
class Guard:
    """Finds callers, counts their requests, and records refusals."""

    settings: Settings
    database: Database
    _found: dict[bytes, tuple[float, tokens.Token]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._known = RateLimit(self.settings.rate_limit)
        self._unknown = RateLimit(self.settings.anonymous_rate_limit)

    def check(self, access: Access) -> None:
        """Let the current request in, or raise and record why not."""
        if not access.scopes and not self._has_credentials():
            self._count_stranger(access)
            return
        try:
            who = self._identify()
            if who.limited_as is not None:
                _within(self._known, who.limited_as)
            if access.scopes and not who.scopes & set(access.scopes):
                needed = " or ".join(access.scopes)
                raise Refused(
                    who.caller, Forbidden(f"This takes the scope {needed}, which {who.caller} does not have.")
                )
        except Refused as refused:
            _within(self._unknown, refused.who.token or str(refused.who))
            self.record(refused, access.what)
            raise refused.error from None
        g.identity = who

    def refuse(self, who: Caller, error: ServiceError, what: str) -> NoReturn:
        """Record that a caller is refused by policy, and raise the error."""
        self.record(Refused(who, error), what)
        raise error

    def record(self, refused: Refused, what: str) -> None:
        """Append the refusal to the audit."""
        route = request.url_rule.rule if request.url_rule else request.path[:200]
        with self.database.writing() as session:
            audit.append(
                session,
                action=f"{what}.denied",
                actor=refused.who,
                via=refused.who.via,
                subject=None,
                outcome="refused",
                request={"method": request.method, "route": route},
                result={"status": refused.error.status, "reason": refused.error.detail},
                request_id=request_id(),
            )

    def _has_credentials(self) -> bool:
        return "Authorization" in request.headers or FORWARDED_USER in request.headers

    def _count_stranger(self, access: Access) -> None:
        """Whoever is not on this machine may ask what is public, though only so often."""
        if not access.counted:
            return
        try:
            who = self._identify()
        except Refused:
            _within(self._unknown, str(by_address(request.remote_addr)))
        else:
            g.identity = who

    def _identify(self) -> Identity:
        return identify(
            request.remote_addr,
            cast(Any, request.headers),
            settings=self.settings,
            find_token=self._find,
        )

    def _find(self, secret: str) -> tokens.Token | None:
        """The token of this secret; looked up once a second at most, so a revocation takes effect within one."""
        now_s, key = time.monotonic(), tokens.digest(secret)
        with self._lock:
            at_s, token = self._found.get(key, (0.0, None))
        if token is not None and now_s - at_s < CHECK_EVERY_S:
            return token
        with self.database.reading() as session:
            token = tokens.find(session, secret)
        if token is not None:
            with self._lock:
                if len(self._found) >= _MOST_KEPT:
                    self._found.clear()
                self._found[key] = (now_s, token)
        return token


def _within(limit: RateLimit, name: str) -> None:
    if wait_s := limit.wait_s(name):
        raise TooManyRequests(f"{name} asks too often.", retry_after_s=max(1, int(wait_s + 0.999)))
