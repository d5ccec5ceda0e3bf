"""Every limit of Slack's that the bot knows, held against the fake Slack's own copy: what is at the limit is taken,
what is one above it is refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from bot import limits
from tests.support import fake_slack, slack_block_kit

Payload = dict[str, Any]
Case = tuple[Callable[[int], Payload], str]


def message(*blocks: Payload, text: str = "text") -> Payload:
    return {"text": text, "blocks": list(blocks)}


def plain(text: str) -> Payload:
    return {"type": "plain_text", "text": text}


def section(**members: Any) -> Payload:
    return {"type": "section", "text": plain("x"), **members}


def actions(*elements: Payload) -> Payload:
    return {"type": "actions", "elements": list(elements)}


def button(number: int = 0, **members: Any) -> Payload:
    return {"type": "button", "text": plain("x"), "action_id": f"a{number}", **members}


def option(number: int = 0, **members: Any) -> Payload:
    return {"text": plain("x"), "value": f"v{number}", **members}


def option_group() -> Payload:
    return {"label": plain("x"), "options": [option()]}


def select(**members: Any) -> Payload:
    return {"type": "static_select", "action_id": "a", "options": [option()], **members}


def confirm(**members: Any) -> Payload:
    dialog = {"title": plain("x"), "text": plain("x"), "confirm": plain("x"), "deny": plain("x")}
    return message(actions(button(confirm=dialog | members)))


def modal(*blocks: Payload, **members: Any) -> Payload:
    return {"type": "modal", "title": plain("x"), "blocks": list(blocks), **members}


def cells(texts: list[str]) -> list[Payload]:
    return [{"type": "raw_text", "text": text} for text in texts]


def table(rows: int = 1, columns: int = 1, cell: str = "x", settings: int = 0) -> Payload:
    return {
        "type": "table",
        "column_settings": [{"align": "left"}] * settings,
        "rows": [cells([cell] * columns) for _ in range(rows)],
    }


def data_table(rows: int = 1, columns: int = 1, **members: Any) -> Payload:
    return {"type": "data_table", "caption": "x", "rows": [cells(["x"] * columns)] * (rows + 1), **members}


def pie(segments: int = 1, **members: Any) -> Payload:
    points = [{"label": f"s{number}", "value": 1} for number in range(segments)]
    return {"type": "data_visualization", "chart": {"type": "pie", "segments": points}, **members}


def bars(series: int = 1, categories: int = 1, label: str = "x", **members: Any) -> Payload:
    names = [label] * categories
    lines = [{"name": "s", "data": [{"label": name, "value": 1} for name in names]} for _ in range(series)]
    return {"type": "data_visualization", "chart": {"type": "bar", "categories": names, "series": lines, **members}}


def container(children: int = 1, title: str = "x") -> Payload:
    return {"type": "container", "title": plain(title), "child_blocks": [section()] * children}


def card(title: str = "x", body: str = "x", buttons: int = 1) -> Payload:
    return {
        "type": "card",
        "title": plain(title),
        "body": plain(body),
        "actions": [button(number) for number in range(buttons)],
    }


MESSAGES: dict[str, Callable[[int], Payload]] = {
    "BLOCKS_PER_MESSAGE": lambda n: message(*[section()] * n),
    "MESSAGE_TEXT_CHARS": lambda n: message(text="x" * n),
    "MARKDOWN_CHARS": lambda n: message(
        {"type": "markdown", "text": "x" * (n - 9)}, {"type": "markdown", "text": "x" * 9}
    ),
    "BLOCK_ID_CHARS": lambda n: message(section(block_id="x" * n)),
    "ACTION_ID_CHARS": lambda n: message(actions(button(action_id="x" * n))),
    "HEADER_CHARS": lambda n: message({"type": "header", "text": plain("x" * n)}),
    "SECTION_TEXT_CHARS": lambda n: message(section(text=plain("x" * n))),
    "SECTION_FIELDS": lambda n: message(section(fields=[plain("x")] * n)),
    "FIELD_CHARS": lambda n: message(section(fields=[plain("x" * n)])),
    "CONTEXT_ELEMENTS": lambda n: message({"type": "context", "elements": [plain("x")] * n}),
    "CONTEXT_ACTIONS_ELEMENTS": lambda n: message(
        {"type": "context_actions", "elements": [button(number) for number in range(n)]}
    ),
    "ACTIONS_ELEMENTS": lambda n: message(actions(*(button(number) for number in range(n)))),
    "BUTTON_TEXT_CHARS": lambda n: message(actions(button(text=plain("x" * n)))),
    "BUTTON_VALUE_CHARS": lambda n: message(actions(button(value="x" * n))),
    "BUTTON_URL_CHARS": lambda n: message(actions(button(url="x" * n))),
    "OPTION_TEXT_CHARS": lambda n: message(actions(select(options=[option(text=plain("x" * n))]))),
    "OPTION_VALUE_CHARS": lambda n: message(actions(select(options=[option(value="x" * n)]))),
    "OPTION_DESCRIPTION_CHARS": lambda n: message(actions(select(options=[option(description=plain("x" * n))]))),
    "SELECT_OPTIONS": lambda n: message(actions(select(options=[option(number) for number in range(n)]))),
    "SELECT_OPTION_GROUPS": lambda n: message(
        actions(
            {
                "type": "static_select",
                "action_id": "a",
                "option_groups": [{"label": plain("x"), "options": [option()]}] * n,
            }
        )
    ),
    "OVERFLOW_OPTIONS": lambda n: message(
        actions({"type": "overflow", "action_id": "a", "options": [option(number) for number in range(n)]})
    ),
    "CHECKBOX_OPTIONS": lambda n: message(
        actions({"type": "checkboxes", "action_id": "a", "options": [option(number) for number in range(n)]})
    ),
    "RADIO_OPTIONS": lambda n: message(
        actions({"type": "radio_buttons", "action_id": "a", "options": [option(number) for number in range(n)]})
    ),
    "PLACEHOLDER_CHARS": lambda n: message(actions(select(placeholder=plain("x" * n)))),
    "CONFIRM_TITLE_CHARS": lambda n: confirm(title=plain("x" * n)),
    "CONFIRM_TEXT_CHARS": lambda n: confirm(text=plain("x" * n)),
    "CONFIRM_BUTTON_CHARS": lambda n: confirm(deny=plain("x" * n)),
    "TABLE_ROWS": lambda n: message(table(rows=n)),
    "TABLE_COLUMNS": lambda n: message(table(columns=n)),
    "TABLE_COLUMN_SETTINGS": lambda n: message(table(settings=n)),
    "TABLE_CELLS_CHARS": lambda n: message({"type": "table", "rows": [cells(["x" * (n - 100)]), cells(["x" * 100])]}),
    "TABLES_PER_MESSAGE": lambda n: message(*[table()] * n),
    "DATA_TABLE_ROWS": lambda n: message(data_table(rows=n)),
    "DATA_TABLE_COLUMNS": lambda n: message(data_table(columns=n)),
    "DATA_TABLE_PAGE_SIZE": lambda n: message(data_table(page_size=n)),
    "CHART_TITLE_CHARS": lambda n: message(pie(title="x" * n)),
    "CHART_SEGMENTS": lambda n: message(pie(segments=n)),
    "CHART_SERIES": lambda n: message(bars(series=n)),
    "CHART_CATEGORIES": lambda n: message(bars(categories=n)),
    "CHART_LABEL_CHARS": lambda n: message(bars(label="x" * n)),
    "CHART_AXIS_TITLE_CHARS": lambda n: message(bars(x_axis_title="x" * n)),
    "CHARTS_PER_MESSAGE": lambda n: message(*[pie()] * n),
    "CONTAINER_BLOCKS": lambda n: message(container(children=n)),
    "CONTAINER_TITLE_CHARS": lambda n: message(container(title="x" * n)),
    "CARD_TITLE_CHARS": lambda n: message(card(title="x" * n)),
    "CARD_BODY_CHARS": lambda n: message(card(body="x" * n)),
    "CARD_ACTIONS": lambda n: message(card(buttons=n)),
    "CAROUSEL_CARDS": lambda n: message({"type": "carousel", "elements": [card()] * n}),
}
VIEWS: dict[str, Callable[[int], Payload]] = {
    "BLOCKS_PER_MODAL": lambda n: modal(*[section()] * n),
    "BLOCKS_PER_HOME": lambda n: {"type": "home", "blocks": [section()] * n},
    "CALLBACK_ID_CHARS": lambda n: modal(callback_id="x" * n),
    "MODAL_TITLE_CHARS": lambda n: modal(title=plain("x" * n)),
    "MODAL_SUBMIT_CHARS": lambda n: modal(submit=plain("x" * n)),
    "MODAL_CLOSE_CHARS": lambda n: modal(close=plain("x" * n)),
    "PRIVATE_METADATA_CHARS": lambda n: modal(private_metadata="x" * n),
}
#: Held by the tests of what keeps them, not by the shape of a payload.
HELD_ELSEWHERE = {
    "MESSAGE_BLOCKS_CHARS": "test_the_longest_blocks_of_a_posted_message_stay_below_what_slack_refuses",
    "MODAL_STACK_VIEWS": "the forms open one view and never push another",
    "ACK_S": "tests/bot/listeners",
    "RESPONSE_URL_USES": "test_a_response_url_takes_five_messages",
    "RESPONSE_URL_S": "test_a_response_url_takes_five_messages",
    "TRIGGER_S": "tests/bot/listeners",
    "SIGNATURE_AGE_S": "tests/bot/test_wsgi.py",
    "POST_PAUSE_S": "tests/bot/test_delivery.py",
    "REQUEST_BODY_BYTES": "tests/bot/test_wsgi.py",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_at_the_limit_is_taken_and_one_above_is_refused(name: str) -> None:
    limit = getattr(limits, name)
    assert slack_block_kit.problems(MESSAGES[name](limit)) == []
    assert slack_block_kit.problems(MESSAGES[name](limit + 1)) != []


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_at_the_limit_is_taken_and_one_above_is_refused(name: str) -> None:
    limit, surface = getattr(limits, name), "home" if name == "BLOCKS_PER_HOME" else "modal"
    assert slack_block_kit.problems(VIEWS[name](limit), surface) == []
    assert slack_block_kit.problems(VIEWS[name](limit + 1), surface) != []


def test_no_limit_is_without_a_test() -> None:
    known = {name for name in vars(limits) if name.isupper()}
    assert known == MESSAGES.keys() | VIEWS.keys() | HELD_ELSEWHERE.keys()


def test_the_longest_blocks_of_a_posted_message_stay_below_what_slack_refuses() -> None:
    assert limits.MESSAGE_BLOCKS_CHARS < 13_200


def test_a_response_url_takes_five_messages() -> None:
    assert limits.RESPONSE_URL_USES == fake_slack.RESPONSE_URL_USES == 5


def test_empty_cells_unknown_members_and_doubled_ids_are_refused() -> None:
    refused = [
        message(table(cell="")),
        message(section(colour="red")),
        message(section(block_id="same"), section(block_id="same")),
        message(actions(button(1), button(1))),
        message({"type": "hologram"}),
        {"text": "  "},
    ]
    assert [bool(slack_block_kit.problems(payload)) for payload in refused] == [True] * len(refused)


def test_the_judge_survives_any_damage_to_a_payload() -> None:
    """A fake Slack that crashes would let a bad message pass for a broken connection."""
    rng = random.Random(20261130)
    for _ in range(300):
        payload = rng.choice(list(MESSAGES.values()))(3)
        spots = [(node, key) for node, key in _spots(payload)]
        node, key = rng.choice(spots)
        node[key] = rng.choice([None, 7, "", "x" * 50, [], {}, True])
        assert isinstance(slack_block_kit.problems(payload), list)


def _spots(node: Any) -> list[tuple[Any, Any]]:
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [(node, key) for key, _ in pairs] + [spot for _, child in pairs for spot in _spots(child)]
