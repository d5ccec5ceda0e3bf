"""What is asked of the bot, and what it has to answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.asker import Asker
from bot.blocks.links import Links
from bot.service_client import Call, ServiceClient


@dataclass(frozen=True, slots=True)
class Question:
    """Words that were typed or a press that stands for them, by whom; `key` is the same when it arrives twice."""

    text: str
    asker: Asker
    key: str
    request_id: str

    @property
    def call(self) -> Call:
        return Call(asker=self.asker, request_id=self.request_id)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where answers come from, and where links in them lead."""

    service: ServiceClient
    links: Links


def request_of(sizing: Mapping[str, Any]) -> dict[str, Any]:
    """The question behind a sizing as flat JSON, so that one key can be changed and it can be asked again.

    A typed command cannot be taken with keys beside it; what it gave is in `inputs`, with `from` = request. The model
    stands by its id, or by its parameter count when its shape was derived from a bare size.
    """
    asked = dict(sizing["request"])
    if "command" not in asked:
        return asked
    given = {key: item["value"] for key, item in sizing["inputs"].items() if item["from"] == "request"}
    model = sizing["model"]
    given["model"] = model["id"] if model.get("id") not in (None, DERIVED) else {"parameters": model["parameters"]}
    return given


DERIVED = "derived"
"""The id of a model whose shape follows from its neighbours in the catalogue."""
