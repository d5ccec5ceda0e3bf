"""Addresses of the service as people's browsers reach it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from bot.blocks.text import escape, link

_IDENTIFIER = re.compile(r"sz_[0-9a-z]{1,64}")


@dataclass(frozen=True, slots=True)
class Links:
    """Without a public address everything is said without a link."""

    public_url: str | None = None

    def sizing_url(self, identifier: str) -> str | None:
        return f"{self.public_url}/sizings/{quote(identifier, safe='')}" if self.public_url else None

    def sizing_in(self, url: str) -> str | None:
        """The id of the sizing that an address of ours leads to."""
        if self.public_url is None or not url.startswith(f"{self.public_url}/sizings/"):
            return None
        identifier = url.removeprefix(f"{self.public_url}/sizings/").partition("?")[0].partition("#")[0]
        return identifier if _IDENTIFIER.fullmatch(identifier) else None

    def sizing(self, identifier: str) -> str:
        """A link in mrkdwn, or the bare id."""
        url = self.sizing_url(identifier)
        return link(url, identifier) if url else escape(identifier)
