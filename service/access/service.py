"""Who is asking, and what they may do: a token, a person behind a trusted proxy, or whoever is on this machine."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from service.access import tokens
from service.access.tokens import Token
from service.door import Caller, Identity
from service.errors import FieldError, Forbidden, MalformedBody, ServiceError, Unauthorized
from service.scopes import EVERYTHING, expanded
from service.settings import Network, Settings

ON_BEHALF_OF = "Trainmem-On-Behalf-Of"
CHANNEL = "Trainmem-Channel"
GROUPS = "Trainmem-Groups"
FORWARDED_USER = "X-Forwarded-User"
#: A request with one of these came through a proxy, so its address says nothing about who sent it.
FORWARDING = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", FORWARDED_USER)

_NAMED = r"(?P<kind>[a-z][a-z0-9-]{0,31}):(?:(?P<team>[A-Za-z0-9._-]{1,64})/)?(?P<id>[A-Za-z0-9._@-]{1,100})"
_WRITTEN = re.compile(_NAMED)
_PERSON = re.compile(r"[A-Za-z0-9._@+-]{1,100}")
_CHANNEL = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FORM = "kind:id or kind:team/id"
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="trainmem"'}


class Refused(Exception):
    """A refusal and whom it concerns, so that it can be recorded."""

    def __init__(self, who: Caller, error: ServiceError) -> None:
        super().__init__(error.detail)
        self.who = who
        self.error = error


def by_address(address: str | None) -> Caller:
    """The caller as the network shows it; a request over a Unix socket has no address."""
    return Caller("address", address or "unix")


def identify(
    address: str | None,
    headers: Mapping[str, str],
    *,
    settings: Settings,
    find_token: Callable[[str], Token | None],
    now: datetime.datetime | None = None,
) -> Identity:
    """Who asks, from the peer's address and the request's headers.

    Raises Refused around Unauthorized or Forbidden, and MalformedBody for a header that cannot be read.
    """
    who = _itself(address, headers, settings, find_token, now or datetime.datetime.now(datetime.UTC))
    return _on_behalf(who, headers)


def _itself(
    address: str | None,
    headers: Mapping[str, str],
    settings: Settings,
    find_token: Callable[[str], Token | None],
    now: datetime.datetime,
) -> Identity:
    if (authorization := headers.get("Authorization")) is not None:
        return _by_token(address, authorization, find_token, now)
    if (person := headers.get(FORWARDED_USER)) is not None:
        return _by_proxy(address, person, settings)
    is_proxy = address is not None and _within(address, settings.proxy_addresses)
    came_through_proxy = is_proxy or any(name in headers for name in FORWARDING)
    if not came_through_proxy and (not address or _within(address, settings.trusted_addresses)):
        return Identity(caller=by_address(address), scopes=EVERYTHING, limited_as=None, may_act_for_others=True)
    if ON_BEHALF_OF in headers:
        read_name(headers[ON_BEHALF_OF], ON_BEHALF_OF)
    detail = "Send an API token: Authorization: Bearer tmk_… (trainmem token create makes one)."
    raise Refused(by_address(address), Unauthorized(detail, headers=_CHALLENGE))


def _by_token(
    address: str | None, authorization: str, find_token: Callable[[str], Token | None], now: datetime.datetime
) -> Identity:
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    token = find_token(secret) if scheme.lower() == "bearer" and tokens.WRITTEN.fullmatch(secret) else None
    if token is None:
        detail = "This token is not known. The header is written Authorization: Bearer tmk_…"
        raise Refused(by_address(address), Unauthorized(detail, headers=_CHALLENGE))
    caller = Caller("token", token.name, token.team, token=token.id)
    if (state := token.state(now)) != "valid":
        ended = token.revoked_at if state == "revoked" else token.expires_at
        when = f" on {ended:%Y-%m-%d at %H:%M} UTC" if ended else ""
        detail = f"The token {token.name} ({token.id}) {'was revoked' if state == 'revoked' else 'expired'}{when}."
        raise Refused(caller, Unauthorized(detail, headers=_CHALLENGE))
    return Identity(
        caller=caller,
        scopes=expanded(token.scopes),
        limited_as=token.id,
        may_act_for_others=token.for_others,
    )


def _by_proxy(address: str | None, person: str, settings: Settings) -> Identity:
    if address is None or not _within(address, settings.proxy_addresses):
        detail = f"{address or 'a Unix socket'} may not say who asks; TRAINMEM_PROXY_ADDRESSES names who may."
        raise Refused(by_address(address), Forbidden(detail))
    if not _PERSON.fullmatch(person):
        raise _unreadable(FORWARDED_USER, person, "1 to 100 letters, digits, '.', '_', '@', '+' or '-'")
    caller = Caller("user", person)
    if str(caller) in settings.administrators:
        scopes = EVERYTHING
    else:
        scopes = settings.people_scopes | ({"decide"} if str(caller) in settings.deciders else set())
    return Identity(caller=caller, scopes=expanded(frozenset(scopes)), limited_as=str(caller))


def _on_behalf(who: Identity, headers: Mapping[str, str]) -> Identity:
    if (named := headers.get(ON_BEHALF_OF)) is None:
        return who
    other = read_name(named, ON_BEHALF_OF)
    if not who.may_act_for_others:
        detail = f"{who.caller} may not act for others; a token made with --for-others may."
        raise Refused(who.caller, Forbidden(detail))
    if (channel := headers.get(CHANNEL)) is not None and not _CHANNEL.fullmatch(channel):
        raise _unreadable(CHANNEL, channel, "1 to 64 letters, digits, '.', '_' or '-'")
    groups = [part.strip() for part in headers.get(GROUPS, "").split(",") if part.strip()]
    return replace(
        who,
        caller=replace(other, token=who.caller.token, channel=channel),
        acts_for_other=True,
        groups=frozenset(str(read_name(group, GROUPS)) for group in groups),
    )


def read_name(text: str, header: str) -> Caller:
    """`slack:T012/U345` as a caller. Raises MalformedBody that names the header."""
    if not (read := _WRITTEN.fullmatch(text)):
        raise _unreadable(header, text, _FORM)
    return Caller(read["kind"], read["id"], read["team"])


def _unreadable(header: str, given: str, form: str) -> MalformedBody:
    wrong = FieldError("", f"the header {header} cannot be read", given[:100], form)
    return MalformedBody(f"The header {header} is written {form}.", errors=[wrong])


def _within(address: str, networks: tuple[Network, ...]) -> bool:
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped:
        peer = peer.ipv4_mapped
    return any(peer in network for network in networks)
