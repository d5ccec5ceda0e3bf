"""Text that may stand in a Slack message: escaped, cleaned of what does not show, cut to length."""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"

_BACKTICK_LOOKALIKE = "\N{MODIFIER LETTER GRAVE ACCENT}"
_UNFINISHED = re.compile(r"(?:&[a-z]*|<[^>]*)\Z")


def clean(text: str) -> str:
    """One line of what is visible: no control or zero-width characters, nothing that turns the reading direction."""
    shown = (" " if character in "\t\n\r\v\f\x85\u2028\u2029" else character for character in text)
    kept = (character for character in shown if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    return " ".join("".join(kept).split())


def clip(text: str, limit: int) -> str:
    """At most `limit` characters, an ellipsis in place of what is cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def clip_mrkdwn(text: str, limit: int) -> str:
    """As `clip`, for text that is escaped already: never cuts inside `&amp;` or `<link|label>`."""
    if len(text) <= limit:
        return text
    return _UNFINISHED.sub("", text[: limit - 1]).rstrip() + ELLIPSIS


def escape(text: str) -> str:
    """Makes `&`, `<` and `>` plain characters, so that `<!channel>` in somebody's text pings nobody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str, limit: int = 300) -> str:
    """Somebody's text as a code span: nothing in it is formatting, a mention or a link."""
    inside = escape(clip(clean(text).replace("`", _BACKTICK_LOOKALIKE), limit))
    return f"`{inside or ' '}`"


def bold(text: str) -> str:
    """Bold mrkdwn; asterisks inside would end it and are taken out."""
    return f"*{escape(clean(text).replace('*', ''))}*"


def link(url: str, label: str) -> str:
    return f"<{escape(url).replace('|', '%7C')}|{escape(clean(label))}>"


def plain(mrkdwn: str) -> str:
    """What a screen reader or a terminal should get of our own mrkdwn: labels of links, no emphasis, no entities."""
    text = re.sub(r"<@(\w+)>", r"@\1", re.sub(r"<([^|>]+)\|([^>]+)>", r"\2", mrkdwn))
    text = re.sub(r"(?<!\w)[*`]|[*`](?!\w)", "", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
