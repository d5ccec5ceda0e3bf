"""Addresses of the service as people's browsers reach it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from bot import texts
from bot.blocks.text import escape, link


@dataclass(frozen=True, slots=True)
class Links:
    """Without a public address everything is said without a link."""

    public_url: str | None = None

    def sizing_url(self, identifier: str) -> str | None:
        return f"{self.public_url}/sizings/{quote(identifier, safe='')}" if self.public_url else None

    def sizing(self, identifier: str) -> str:
        """A link in mrkdwn, or the bare id."""
        url = self.sizing_url(identifier)
        return link(url, texts.OPEN.format(id=identifier)) if url else escape(identifier)
