"""What Slack accepts, as numbers: texts in characters, lists in items. Builders cut to these, the tests hold each one.

Where Slack's own pages and later readings disagree (rows of a data table, segments of a pie), the lower number stands.
"""

from __future__ import annotations

# Messages, modals, the Home tab
BLOCKS_PER_MESSAGE = 50
BLOCKS_PER_MODAL = 100
BLOCKS_PER_HOME = 100
MESSAGE_TEXT_CHARS = 4_000
MESSAGE_BLOCKS_CHARS = 13_000
"""`chat.postMessage` refuses somewhat more than this over all blocks (`msg_blocks_too_long`); not documented."""
MARKDOWN_CHARS = 12_000
"""Summed over all markdown blocks of one payload."""

# Names that come back with an interaction
BLOCK_ID_CHARS = 255
ACTION_ID_CHARS = 255
CALLBACK_ID_CHARS = 255

# Classic blocks
HEADER_CHARS = 150
SECTION_TEXT_CHARS = 3_000
SECTION_FIELDS = 10
FIELD_CHARS = 2_000
CONTEXT_ELEMENTS = 10
CONTEXT_ACTIONS_ELEMENTS = 5
ACTIONS_ELEMENTS = 25

# Elements
BUTTON_TEXT_CHARS = 75
BUTTON_VALUE_CHARS = 2_000
BUTTON_URL_CHARS = 3_000
OPTION_TEXT_CHARS = 75
OPTION_VALUE_CHARS = 150
OPTION_DESCRIPTION_CHARS = 75
SELECT_OPTIONS = 100
SELECT_OPTION_GROUPS = 100
OVERFLOW_OPTIONS = 5
CHECKBOX_OPTIONS = 10
RADIO_OPTIONS = 10
PLACEHOLDER_CHARS = 150
CONFIRM_TITLE_CHARS = 100
CONFIRM_TEXT_CHARS = 300
CONFIRM_BUTTON_CHARS = 30

# Modals
MODAL_TITLE_CHARS = 24
MODAL_SUBMIT_CHARS = 24
MODAL_CLOSE_CHARS = 24
PRIVATE_METADATA_CHARS = 3_000
MODAL_STACK_VIEWS = 3
"""Views that may lie on one another; Slack answers the fourth `views.push` with an error."""

# Tables: one block of the table family per message, an empty cell is refused
TABLE_ROWS = 100
TABLE_COLUMNS = 20
TABLE_COLUMN_SETTINGS = 20
TABLE_CELLS_CHARS = 10_000
"""Summed over every cell of the message."""
TABLES_PER_MESSAGE = 1
DATA_TABLE_ROWS = 100
"""Without the header row."""
DATA_TABLE_COLUMNS = 20
DATA_TABLE_PAGE_SIZE = 100

# Charts
CHART_TITLE_CHARS = 50
CHART_SEGMENTS = 6
CHART_SERIES = 6
CHART_CATEGORIES = 20
CHART_LABEL_CHARS = 20
CHART_AXIS_TITLE_CHARS = 50
CHARTS_PER_MESSAGE = 2

# Newer blocks
CONTAINER_BLOCKS = 10
CONTAINER_TITLE_CHARS = 150
CARD_TITLE_CHARS = 150
CARD_BODY_CHARS = 200
CARD_ACTIONS = 3
CAROUSEL_CARDS = 10

# Time
ACK_S = 3.0
"""A command, a press or a submitted form that is not acknowledged by then shows a failure."""
RESPONSE_URL_USES = 5
RESPONSE_URL_S = 30 * 60
TRIGGER_S = 3.0
"""A `trigger_id` opens a modal no later than this."""
SIGNATURE_AGE_S = 5 * 60
POST_PAUSE_S = 1.0
"""Slack takes about one message a second per channel; the wait after a 429 that does not say how long."""

# Ours: what the guard lets in. The largest real payload is a submitted form of 100 blocks, well below this.
REQUEST_BODY_BYTES = 1024 * 1024
