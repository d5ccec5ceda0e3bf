"""Elements of Block Kit: which members each kind must and may have, and the rule of each member."""

from __future__ import annotations

from tests.support.slack_rules import (
    Rule,
    anything,
    boolean,
    chars,
    choice,
    finite,
    items,
    one_of,
    plain,
    shape,
    text_object,
    whole_number,
)

MRKDWN_OR_PLAIN = ("mrkdwn", "plain_text")
ACTION_ID = chars(255)
Kinds = dict[str, tuple[dict[str, Rule], dict[str, Rule]]]

confirm: Rule = lambda value, at: shape(  # noqa: E731
    value,
    at,
    required={
        "title": plain(100),
        "text": text_object(300, *MRKDWN_OR_PLAIN),
        "confirm": plain(30),
        "deny": plain(30),
    },
    optional={"style": choice("primary", "danger")},
)
option: Rule = lambda value, at: shape(  # noqa: E731
    value,
    at,
    required={"text": text_object(75, *MRKDWN_OR_PLAIN), "value": chars(150)},
    optional={"description": text_object(75, *MRKDWN_OR_PLAIN), "url": chars(3000)},
)
option_group: Rule = lambda value, at: shape(  # noqa: E731
    value, at, required={"label": plain(75), "options": items(option, 1, 100)}, optional={}
)

BUTTONS: Kinds = {
    "button": (
        {"text": plain(75)},
        {
            "action_id": ACTION_ID,
            "value": chars(2000),
            "url": chars(3000),
            "style": choice("primary", "danger"),
            "confirm": confirm,
            "accessibility_label": chars(75),
        },
    ),
}
SELECTS: Kinds = {
    "static_select": (
        {},
        {
            "options": items(option, 1, 100),
            "option_groups": items(option_group, 1, 100),
            "initial_option": option,
            "placeholder": plain(150),
            "action_id": ACTION_ID,
            "confirm": confirm,
            "focus_on_load": boolean,
        },
    ),
    "external_select": (
        {},
        {
            "initial_option": option,
            "min_query_length": whole_number(0, 100),
            "placeholder": plain(150),
            "action_id": ACTION_ID,
            "confirm": confirm,
            "focus_on_load": boolean,
        },
    ),
    "overflow": ({"options": items(option, 1, 5)}, {"action_id": ACTION_ID, "confirm": confirm}),
}
CHOICES: Kinds = {
    "checkboxes": (
        {"options": items(option, 1, 10)},
        {"initial_options": items(option, 1, 10), "action_id": ACTION_ID, "confirm": confirm, "focus_on_load": boolean},
    ),
    "radio_buttons": (
        {"options": items(option, 1, 10)},
        {"initial_option": option, "action_id": ACTION_ID, "confirm": confirm, "focus_on_load": boolean},
    ),
}
INPUTS: Kinds = {
    "plain_text_input": (
        {},
        {
            "action_id": ACTION_ID,
            "initial_value": chars(3000, least=0),
            "multiline": boolean,
            "min_length": whole_number(0, 3000),
            "max_length": whole_number(1, 3000),
            "placeholder": plain(150),
            "focus_on_load": boolean,
            "dispatch_action_config": anything,
        },
    ),
    "number_input": (
        {"is_decimal_allowed": boolean},
        {
            "action_id": ACTION_ID,
            "initial_value": chars(50),
            "min_value": chars(50),
            "max_value": chars(50),
            "placeholder": plain(150),
        },
    ),
}
IMAGES: Kinds = {"image": ({"alt_text": chars(2000)}, {"image_url": chars(3000), "slack_file": anything})}
TEXTS: Kinds = {
    "mrkdwn": ({"text": chars(3000)}, {"verbatim": boolean}),
    "plain_text": ({"text": chars(3000)}, {"emoji": boolean}),
}
FEEDBACK: Kinds = {
    "feedback_buttons": ({"positive_button": anything, "negative_button": anything}, {"action_id": ACTION_ID})
}

RICH_TEXT_PIECES: Kinds = {
    "text": ({"text": chars(30_000)}, {"style": anything}),
    "link": ({"url": chars(3000)}, {"text": chars(3000), "style": anything}),
    "emoji": ({"name": chars(100)}, {}),
    "user": ({"user_id": chars(50)}, {}),
}
rich_text_piece = one_of(RICH_TEXT_PIECES)
rich_text_section = one_of(
    {
        "rich_text_section": ({"elements": items(rich_text_piece, 0, 1000)}, {}),
        "rich_text_preformatted": ({"elements": items(rich_text_piece, 1, 1000)}, {"border": whole_number(0, 1)}),
        "rich_text_quote": ({"elements": items(rich_text_piece, 1, 1000)}, {"border": whole_number(0, 1)}),
        "rich_text_list": (
            {"elements": anything, "style": choice("bullet", "ordered")},
            {"indent": whole_number(0, 8)},
        ),
    }
)
TABLE_CELLS: Kinds = {
    "raw_text": ({"text": chars(10_000)}, {}),
    "raw_number": ({"value": anything}, {"text": chars(10_000)}),
    "rich_text": ({"elements": items(rich_text_section, 1, 100)}, {}),
}
column_setting: Rule = lambda value, at: shape(  # noqa: E731
    value, at, required={}, optional={"align": choice("left", "center", "right"), "is_wrapped": boolean}
)

# Charts -------------------------------------------------------------------------------------------------------------

LABEL = chars(20)
point: Rule = lambda value, at: shape(value, at, required={"label": LABEL, "value": finite}, optional={})  # noqa: E731
series: Rule = lambda value, at: shape(  # noqa: E731
    value, at, required={"name": chars(50), "data": items(point, 1, 20)}, optional={}
)
AXES: tuple[dict[str, Rule], dict[str, Rule]] = (
    {"categories": items(LABEL, 1, 20), "series": items(series, 1, 6)},
    {"x_axis_title": chars(50), "y_axis_title": chars(50)},
)
CHARTS: Kinds = {"pie": ({"segments": items(point, 1, 6)}, {}), "bar": AXES, "line": AXES, "area": AXES}
