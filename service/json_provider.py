"""Flask's JSON, with the strictness of `service.strict_json`."""

from __future__ import annotations

from typing import Any

from flask.json.provider import DefaultJSONProvider

from service import strict_json


class StrictJSONProvider(DefaultJSONProvider):
    """Flask's provider, but for members in the order they are given, and `loads` that refuses what is doubtful."""

    sort_keys = False

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        return strict_json.loads(s)
