"""Who is asking. Before there are tokens a caller is its address, or whom a trusted address speaks for."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from service.errors import FieldError, Forbidden, MalformedBody
from service.settings import Network

ON_BEHALF_OF = "Trainmem-On-Behalf-Of"

_WRITTEN = re.compile(
    r"(?P<kind>[a-z][a-z0-9-]{0,31}):(?:(?P<team>[A-Za-z0-9._-]{1,64})/)?(?P<id>[A-Za-z0-9._@-]{1,100})"
)
_WAYS_IN = {"slack": "slack"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Ids, no names: what kind of identity it is, the id, and the workspace or group that the id belongs to."""

    kind: str
    id: str
    team: str | None = None

    @property
    def via(self) -> str:
        """The way in that an audit entry names."""
        return _WAYS_IN.get(self.kind, "api")

    def __str__(self) -> str:
        return f"{self.kind}:{self.team}/{self.id}" if self.team else f"{self.kind}:{self.id}"


def by_address(address: str | None) -> Caller:
    """The caller as the network shows it; a request over a Unix socket has no address."""
    return Caller("address", address or "unix")


def caller(address: str | None, on_behalf_of: str | None, trusted: tuple[Network, ...]) -> Caller:
    """Who asks, from the peer's address and the header Trainmem-On-Behalf-Of ("slack:T012/U345").

    Raises MalformedBody if the header cannot be read, Forbidden if this address may not speak for others.
    """
    if on_behalf_of is None:
        return by_address(address)
    if not (read := _WRITTEN.fullmatch(on_behalf_of)):
        form = "kind:id or kind:team/id"
        wrong = FieldError("", f"the header {ON_BEHALF_OF} cannot be read", on_behalf_of[:100], form)
        raise MalformedBody(f"The header {ON_BEHALF_OF} is written {form}.", errors=[wrong])
    if not _is_trusted(address, trusted):
        raise Forbidden(f"{address} may not act for others; TRAINMEM_TRUSTED_ADDRESSES names who may.")
    return Caller(read["kind"], read["id"], read["team"])


def _is_trusted(address: str | None, trusted: tuple[Network, ...]) -> bool:
    if not address:  # a Unix socket: whoever can open it is on this machine
        return True
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped:
        peer = peer.ipv4_mapped
    return any(peer in network for network in trusted)
