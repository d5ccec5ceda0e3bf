"""A judge of Block Kit payloads with Slack's rules written down a second time, on purpose not from `bot.limits`.

`problems(payload)` answers as Slack does in `response_metadata.messages`: a sentence and a JSON pointer for each fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.slack_elements import (
    BUTTONS,
    CHARTS,
    CHOICES,
    FEEDBACK,
    IMAGES,
    INPUTS,
    MRKDWN_OR_PLAIN,
    SELECTS,
    TABLE_CELLS,
    TEXTS,
    Kinds,
    column_setting,
    rich_text_section,
)
from tests.support.slack_rules import (
    anything,
    boolean,
    chars,
    choice,
    fault,
    items,
    one_of,
    plain,
    shape,
    text_object,
    whole_number,
)

SURFACE_BLOCKS = {"message": 50, "modal": 100, "home": 100}
TABLE_FAMILY = ("table", "data_table")


def problems(payload: dict[str, Any], surface: str = "message") -> list[str]:
    """Everything Slack would refuse in a message payload or a view, in reading order."""
    found: list[str] = []
    blocks = payload.get("blocks", [])
    if not isinstance(blocks, list):
        return [fault("blocks must be an array", "/blocks")]
    if surface == "message":
        if not blocks and not str(payload.get("text") or "").strip():
            found.append(fault("no_text", "/text"))
        if len(str(payload.get("text") or "")) > 4000:
            found.append(fault("text must be less than 4001 characters", "/text"))
    else:
        found += view_problems(payload, surface)
    if len(blocks) > SURFACE_BLOCKS[surface]:
        found.append(fault(f"no more than {SURFACE_BLOCKS[surface]} items allowed", "/blocks"))
    for number, block in enumerate(blocks):
        found += block_problems(block, f"/blocks/{number}", surface)
    return found or whole_problems(blocks)


def whole_problems(blocks: list[Any]) -> list[str]:
    """Rules that no single block breaks."""
    found: list[str] = []
    every = [block for top in blocks if isinstance(top, dict) for block in (top, *top.get("child_blocks", []))]
    kinds = [block.get("type") for block in every]
    if sum(kind in TABLE_FAMILY for kind in kinds) > 1:
        found.append(fault("only_one_table_allowed", "/blocks"))
    if kinds.count("data_visualization") > 2:
        found.append(fault("no more than 2 charts allowed", "/blocks"))
    if sum(len(block.get("text", "")) for block in every if block.get("type") == "markdown") > 12_000:
        found.append(fault("markdown text must be less than 12001 characters in total", "/blocks"))
    ids = [block["block_id"] for block in every if "block_id" in block]
    found += [
        fault(f"block_id already exists: {name}", "/blocks") for name in sorted({i for i in ids if ids.count(i) > 1})
    ]
    cells = sum(
        cell_chars(cell)
        for block in every
        if block.get("type") in TABLE_FAMILY
        for row in block.get("rows", [])
        for cell in row
    )
    if cells > 10_000:
        found.append(fault("table cells must be less than 10001 characters in total", "/blocks"))
    return found


def view_problems(view: dict[str, Any], surface: str) -> list[str]:
    found = [fault(f"view type must be {surface}", "/type")] if view.get("type") != surface else []
    found += chars(255)(view["callback_id"], "/callback_id") if "callback_id" in view else []
    found += chars(3000, least=0)(view["private_metadata"], "/private_metadata") if "private_metadata" in view else []
    if surface == "modal":
        found += [fault("missing required field: title", "/title")] if "title" not in view else []
        for name in ("title", "submit", "close"):
            found += plain(24)(view[name], f"/{name}") if name in view else []
        if (
            any(isinstance(block, dict) and block.get("type") == "input" for block in view.get("blocks", []))
            and "submit" not in view
        ):
            found.append(fault("submit is required with input blocks", "/submit"))
    return found


def block_problems(block: Any, at: str, surface: str = "message") -> list[str]:
    if not isinstance(block, dict) or str(block.get("type")) not in BLOCKS:
        return [fault(f"unsupported type: {block.get('type') if isinstance(block, dict) else block!r}", at)]
    kind = block["type"]
    if kind == "alert" and surface != "modal":
        return [fault("alert is allowed in modals only", at)]
    if kind == "input" and surface == "message" and "dispatch_action" not in block:
        return [fault("input is not allowed in messages", at)]
    found = list(shape(block, at, required=BLOCKS[kind][0], optional={"block_id": chars(255), **BLOCKS[kind][1]}))
    return found or EXTRA.get(kind, no_more)(block, at)


def child_block(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict) and value.get("type") in ("container", "data_table", "data_visualization"):
        yield fault(f"{value['type']} is not allowed in a container", at)
    else:
        yield from block_problems(value, at)


BLOCKS: Kinds = {
    "header": ({"text": plain(150)}, {}),
    "section": (
        {},
        {
            "text": text_object(3000, *MRKDWN_OR_PLAIN),
            "fields": items(text_object(2000, *MRKDWN_OR_PLAIN), 1, 10),
            "accessory": one_of({**BUTTONS, **SELECTS, **CHOICES, **IMAGES}),
            "expand": boolean,
        },
    ),
    "context": ({"elements": items(one_of({**TEXTS, **IMAGES}), 1, 10)}, {}),
    "context_actions": ({"elements": items(one_of({**FEEDBACK, **BUTTONS}), 1, 5)}, {}),
    "actions": ({"elements": items(one_of({**BUTTONS, **SELECTS, **CHOICES}), 1, 25)}, {}),
    "divider": ({}, {}),
    "image": ({"alt_text": chars(2000)}, {"image_url": chars(3000), "slack_file": anything, "title": plain(2000)}),
    "markdown": ({"text": chars(12_000)}, {}),
    "rich_text": ({"elements": items(rich_text_section, 1, 100)}, {}),
    "input": (
        {"label": plain(2000), "element": one_of({**INPUTS, **SELECTS, **CHOICES})},
        {"hint": plain(2000), "optional": boolean, "dispatch_action": boolean},
    ),
    "table": (
        {"rows": items(items(one_of(TABLE_CELLS), 1, 20), 1, 100)},
        {"column_settings": items(column_setting, 0, 20)},
    ),
    "data_table": (
        {"rows": items(items(one_of(TABLE_CELLS), 1, 20), 2, 101), "caption": chars(2000)},
        {"page_size": whole_number(1, 100), "row_header_column_index": whole_number(0, 19)},
    ),
    "data_visualization": ({"chart": one_of(CHARTS)}, {"title": chars(50)}),
    "container": (
        {"child_blocks": items(child_block, 1, 10), "title": plain(150)},
        {
            "is_collapsible": boolean,
            "default_collapsed": boolean,
            "width": choice("narrow", "standard", "wide", "full"),
        },
    ),
    "card": (
        {},
        {
            "title": text_object(150, *MRKDWN_OR_PLAIN),
            "body": text_object(200, *MRKDWN_OR_PLAIN),
            "actions": items(one_of(BUTTONS), 1, 3),
        },
    ),
    "carousel": ({"elements": items(lambda value, at: iter(block_problems(value, at)), 1, 10)}, {}),
    "alert": (
        {"text": text_object(2000, *MRKDWN_OR_PLAIN)},
        {"level": choice("default", "info", "warning", "error", "success")},
    ),
}


def no_more(block: dict[str, Any], at: str) -> list[str]:
    return []


def section_extra(block: dict[str, Any], at: str) -> list[str]:
    return [] if "text" in block or "fields" in block else [fault("must define either text or fields", at)]


def actions_extra(block: dict[str, Any], at: str) -> list[str]:
    ids = [
        element["action_id"] for element in block["elements"] if isinstance(element, dict) and "action_id" in element
    ]
    return [fault(f"action_id already exists: {name}", at) for name in sorted({i for i in ids if ids.count(i) > 1})]


def data_table_extra(block: dict[str, Any], at: str) -> list[str]:
    rows = block.get("rows", [])
    found = [fault("rows must have the same length", at)] if len({len(row) for row in rows}) > 1 else []
    header = rows[0] if rows else []
    return found + [
        fault("header cells must not be rich_text", at) for cell in header if cell.get("type") == "rich_text"
    ]


def chart_extra(block: dict[str, Any], at: str) -> list[str]:
    categories, lines = block["chart"].get("categories", []), block["chart"].get("series", [])
    return [fault("a value for each category", at) for line in lines if len(line["data"]) != len(categories)]


def carousel_extra(block: dict[str, Any], at: str) -> list[str]:
    cards = [element for element in block["elements"] if isinstance(element, dict)]
    return [fault("a carousel holds cards only", at) for card in cards if card.get("type") != "card"]


EXTRA: dict[str, Callable[[dict[str, Any], str], list[str]]] = {
    "section": section_extra,
    "actions": actions_extra,
    "data_table": data_table_extra,
    "data_visualization": chart_extra,
    "carousel": carousel_extra,
}


def cell_chars(cell: Any) -> int:
    if not isinstance(cell, dict):
        return 0
    if cell.get("type") == "rich_text":
        return len(
            "".join(piece.get("text", "") for part in cell.get("elements", []) for piece in part.get("elements", []))
        )
    return len(str(cell.get("text", cell.get("value", ""))))


def blocks_chars(payload: dict[str, Any]) -> int:
    """What `chat.postMessage` counts against its cap over all blocks."""
    return len(json.dumps(payload.get("blocks", []), ensure_ascii=False))
