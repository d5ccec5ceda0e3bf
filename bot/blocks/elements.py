"""Block Kit blocks and elements as plain dicts, each cut to what Slack takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bot import limits
from bot.blocks.text import clip, clip_mrkdwn

Block = dict[str, Any]
Element = dict[str, Any]


def plain_text(text: str, limit: int) -> Element:
    return {"type": "plain_text", "text": clip(text, limit) or " ", "emoji": True}


def mrkdwn(text: str, limit: int) -> Element:
    return {"type": "mrkdwn", "text": clip_mrkdwn(text, limit) or " "}


def header(text: str) -> Block:
    return {"type": "header", "text": plain_text(text, limits.HEADER_CHARS)}


def section(text: str, accessory: Element | None = None) -> Block:
    block: Block = {"type": "section", "text": mrkdwn(text, limits.SECTION_TEXT_CHARS)}
    return block | ({"accessory": accessory} if accessory else {})


def fields(pairs: Sequence[tuple[str, str]]) -> Block:
    """Label and mrkdwn value, two abreast on a desk, one below the other on a phone."""
    shown = pairs[: limits.SECTION_FIELDS]
    return {
        "type": "section",
        "fields": [mrkdwn(f"*{label}*\n{value}", limits.FIELD_CHARS) for label, value in shown],
    }


def context(*parts: str) -> Block:
    shown = [part for part in parts if part][: limits.CONTEXT_ELEMENTS]
    return {"type": "context", "elements": [mrkdwn(part, limits.FIELD_CHARS) for part in shown]}


def divider() -> Block:
    return {"type": "divider"}


def actions(elements: Iterable[Element], block_id: str | None = None) -> Block:
    block: Block = {"type": "actions", "elements": list(elements)[: limits.ACTIONS_ELEMENTS]}
    return block | ({"block_id": block_id} if block_id else {})


def button(
    text: str,
    action_id: str,
    *,
    value: str | None = None,
    url: str | None = None,
    style: str | None = None,
    label: str | None = None,
) -> Element:
    """A button. `label` is read out instead of `text`, where the short word is not enough.

    A value is never cut, since half of it would mean something else: too long a value raises ValueError.
    """
    if value is not None and len(value) > limits.BUTTON_VALUE_CHARS:
        raise ValueError(f"button value of {len(value)} characters")
    element: Element = {
        "type": "button",
        "text": plain_text(text, limits.BUTTON_TEXT_CHARS),
        "action_id": action_id,
        "value": value,
        "url": url if url is not None and len(url) <= limits.BUTTON_URL_CHARS else None,
        "style": style,
        "accessibility_label": clip(label, limits.BUTTON_TEXT_CHARS) if label else None,
    }
    return {key: part for key, part in element.items() if part is not None}


def option(text: str, value: str, description: str | None = None) -> Element:
    """A choice of a menu. As with a button, half a value would mean something else: too long raises ValueError."""
    if len(value) > limits.OPTION_VALUE_CHARS:
        raise ValueError(f"option value of {len(value)} characters")
    choice: Element = {"text": plain_text(text, limits.OPTION_TEXT_CHARS), "value": value}
    return choice | ({"description": plain_text(description, limits.OPTION_DESCRIPTION_CHARS)} if description else {})


def static_select(action_id: str, placeholder: str, options: Sequence[Element]) -> Element:
    return {
        "type": "static_select",
        "action_id": action_id,
        "placeholder": plain_text(placeholder, limits.PLACEHOLDER_CHARS),
        "options": list(options)[: limits.SELECT_OPTIONS],
    }


def preformatted(text: str) -> Block:
    """Fixed-width text in which nothing is formatting."""
    return {
        "type": "rich_text",
        "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text or " "}]}],
    }
