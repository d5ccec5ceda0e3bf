"""Buttons and menus under an answer: their names, what they carry, and how that is read back.

The block carries the sizing's id, the element only what is its own (a lever's number, a GPU), so nothing is parsed from
text and nothing outgrows what Slack lets an element carry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot import limits, texts
from bot.blocks import quantities
from bot.blocks.elements import Block, Element, actions, button, option, static_select
from bot.blocks.links import Links
from bot.blocks.terms import name

SHARE = "share"
CHANGE = "change"
COMPARE = "compare_gpus"
EXPLAIN = "explain"
DECIDE = "decide"
EXPLAIN_TERM = "explain_term"
WHAT_IF = "what_if"
SHOW = "show_sizing"
USE_GPU = "use_gpu"
OPEN = "open_in_browser"
NEW = "new_sizing"
USE_SUGGESTION = "use_suggestion"
"""Followed by ":" and a number: several stand in one row."""

_BLOCK = "sizing:"


def block_id(identifier: str, row: str) -> str:
    return f"{_BLOCK}{identifier}:{row}"


def sizing_of(pressed_block_id: str) -> str | None:
    """The id of the sizing under which something was pressed."""
    kind, _, rest = pressed_block_id.partition(":")
    return rest.partition(":")[0] if f"{kind}:" == _BLOCK else None


def sizing_presses(sizing: Mapping[str, Any], links: Links, back_to: str | None) -> tuple[Block, ...]:
    """Under an answer: what people do next. Nothing under one that is not recorded."""
    identifier = sizing.get("id")
    if not identifier:
        return ()
    menu = levers_menu(sizing)
    buttons = [
        button(texts.BUTTON_SHARE, SHARE),
        button(texts.BUTTON_CHANGE, CHANGE),
        button(texts.BUTTON_COMPARE, COMPARE),
        button(texts.BUTTON_EXPLAIN, EXPLAIN),
        button(texts.BUTTON_DECIDE, DECIDE),
        *([button(texts.BUTTON_BACK, SHOW, value=back_to)] if back_to else []),
        *open_button(identifier, links),
    ]
    rows = [actions([menu], block_id(identifier, "levers"))] if menu else []
    return (*rows, actions(buttons, block_id(identifier, "next")))


def shared_presses(sizing: Mapping[str, Any], links: Links) -> tuple[Block, ...]:
    """Under an answer that a whole channel sees: what everybody may ask, answered to whoever pressed."""
    identifier = sizing.get("id")
    if not identifier:
        return ()
    buttons = [button(texts.BUTTON_DECIDE, DECIDE), button(texts.BUTTON_EXPLAIN, EXPLAIN)]
    return (actions([*buttons, *open_button(identifier, links)], block_id(identifier, "shared")),)


def open_button(identifier: str, links: Links) -> list[Element]:
    url = links.sizing_url(identifier)
    return [button(texts.BUTTON_OPEN, OPEN, url=url)] if url else []


def levers_menu(sizing: Mapping[str, Any]) -> Element | None:
    """ "What if…": each lever with the peak it leads to; the value is its place in the list."""
    levers = (sizing.get("levers") or [])[: limits.SELECT_OPTIONS]
    choices = [
        option(
            lever["lever"],
            str(place),
            description=texts.LEVER_SAVES.format(
                saves=quantities.gib(lever["saves_bytes_per_gpu"]), term=lever["touches"].replace("_", " ")
            ),
        )
        for place, lever in enumerate(levers)
    ]
    return static_select(WHAT_IF, texts.MENU_WHAT_IF, choices) if choices else None


def terms_menu(sizing: Mapping[str, Any], shown: str) -> Element | None:
    """ "Another term…": those that weigh anything."""
    others = [term["term"] for term in sizing["per_gpu"]["terms"] if term["bytes"] and term["term"] != shown]
    choices = [option(name(term).capitalize(), term) for term in others]
    return static_select(EXPLAIN_TERM, texts.MENU_TERM, choices) if choices else None
