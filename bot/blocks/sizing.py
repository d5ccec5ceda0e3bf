"""The answer: one sizing as a Slack message, right at a glance and readable on a phone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bot import limits, texts
from bot.blocks import quantities
from bot.blocks.assumptions import assumption_words, run_words
from bot.blocks.bar import gauge
from bot.blocks.chart import per_gpu_chart
from bot.blocks.elements import context, fields, header, section
from bot.blocks.floor import floor_words
from bot.blocks.layout import layout_words
from bot.blocks.links import Links
from bot.blocks.message import Message, Part
from bot.blocks.presses import shared_presses, sizing_presses
from bot.blocks.terms import term_line, term_table
from bot.blocks.text import escape, plain
from bot.blocks.verdict import advice_lines

Sizing = Mapping[str, Any]

WARNINGS_SHOWN = 4
_LAYOUT_WORDS = re.compile(r", (?:one GPU|[a-z_]+=[^\s,;]+)(?:,? [a-z_]+=[^\s,;]+)*(?=;|\Z)")


def sizing_message(
    sizing: Sizing,
    links: Links,
    *,
    lead: tuple[str, str] | None = None,
    standing: str = "",
    shared_by: str | None = None,
) -> Message:
    """Verdict, figures, the table of terms, the floor, what was assumed, where it is recorded, what to press next.

    `lead` is a line above it all and the id of a sizing to go back to, `standing` the decision that stands. A message
    that is shared in a channel says by whom, and offers only what everybody there may press.
    """
    details = [standing, *advice_lines(sizing), floor_words(sizing)]
    title, rest = headline(sizing)
    parts: list[Part] = [header(title), *([section(escape(rest[:1].upper() + rest[1:]))] if rest else [])]
    parts += [section(run_words(sizing)), fields(figures(sizing)), term_table(sizing)]
    chart = per_gpu_chart(sizing)
    parts += [chart] if chart else []
    parts += [section(line) for line in details if line]
    parts += [context(line) for line in (*note_lines(sizing), assumption_words(sizing)) if line]
    parts.append(context(provenance(sizing, links)))
    if lead:
        parts.insert(0, context(lead[0]))
    if shared_by:
        parts.append(context(texts.SHARED_BY.format(user=shared_by)))
        parts += shared_presses(sizing, links)
    else:
        parts += sizing_presses(sizing, links, back_to=lead[1] if lead else None)
    return Message(text=fallback(sizing, details, links), parts=tuple(parts), metadata=metadata(sizing))


def headline(sizing: Sizing) -> tuple[str, str]:
    """The verdict as a header, and what of it a header has no room for: the last clauses.

    The layout has a field of its own just below, so its words ("tp=8 dp=4, recompute=full") are left out.
    """
    verdict = sizing["verdict"]
    said = _LAYOUT_WORDS.sub("", verdict["text"])
    first, rest = f"{texts.MARKS.get(verdict['code'], '')} {said}".strip(), list[str]()
    while len(first) > limits.HEADER_CHARS and "; " in first:
        first, _, clause = first.rpartition("; ")
        rest.insert(0, clause)
    if len(first) > limits.HEADER_CHARS:
        return first, said
    return first, "; ".join(rest)


def figures(sizing: Sizing) -> list[tuple[str, str]]:
    per_gpu, time = sizing["per_gpu"], sizing.get("time") or {}
    pairs = [
        (texts.FIELD_GPUS, escape(gpus_words(sizing))),
        (texts.FIELD_LAYOUT, escape(layout_words(per_gpu["layout"]))),
        (texts.FIELD_PEAK, peak_words(sizing, with_gauge=True)),
        headroom_pair(per_gpu["headroom_bytes"]),
        (texts.FIELD_CONFIDENCE, confidence_words(per_gpu["peak"])),
    ]
    if time.get("step_s"):
        pairs.append((texts.FIELD_SPEED, speed_words(time)))
    if time.get("days") is not None:
        pairs.append((texts.FIELD_COST, days_words(time)))
    return pairs


def gpus_words(sizing: Sizing) -> str:
    per_gpu = sizing["per_gpu"]
    nodes = texts.ONE_NODE if per_gpu["nodes"] == 1 else texts.MANY_NODES.format(nodes=per_gpu["nodes"])
    return texts.GPUS_NODES.format(gpus=per_gpu["gpus"], gpu=sizing["gpu"]["name"], nodes=nodes)


def peak_words(sizing: Sizing, *, with_gauge: bool) -> str:
    per_gpu = sizing["per_gpu"]
    needed, usable = per_gpu["usable_bytes"] - per_gpu["headroom_bytes"], per_gpu["usable_bytes"]
    words = texts.PEAK.format(
        gauge=gauge(needed, usable),
        needed=quantities.both(needed),
        usable=quantities.both(usable),
        moment=texts.MOMENTS.get(per_gpu["peak"]["moment"], per_gpu["peak"]["moment"]),
    )
    return words if with_gauge else words.partition("\n")[2]


def headroom_pair(headroom_bytes: int) -> tuple[str, str]:
    label = texts.FIELD_HEADROOM if headroom_bytes >= 0 else texts.FIELD_MISSING
    return label, quantities.both(abs(headroom_bytes))


def confidence_words(peak: Mapping[str, Any]) -> str:
    return texts.CONFIDENCE_RANGE.format(
        confidence=escape(peak["confidence"]),
        low=quantities.gib(peak["low_bytes"]),
        high=quantities.gib(peak["high_bytes"]),
    )


def speed_words(time: Mapping[str, Any]) -> str:
    return texts.SPEED.format(
        step=quantities.duration(time["step_s"]), tokens_per_s=quantities.count(round(time["tokens_per_s"]))
    )


def days_words(time: Mapping[str, Any]) -> str:
    cost = quantities.money(time["cost"]["usd"]) if time.get("cost") else texts.NO_PRICE
    return texts.DAYS_COST.format(days=f"{time['days']:,.1f}", cost=cost)


def note_lines(sizing: Sizing) -> list[str]:
    warnings = sizing.get("warnings") or []
    return [texts.NOTE.format(message=escape(warning["message"])) for warning in warnings[:WARNINGS_SHOWN]]


def provenance(sizing: Sizing, links: Links) -> str:
    audit, identifier, digest = sizing.get("audit"), sizing.get("id"), str(sizing.get("catalog_digest") or "")
    record = texts.NOT_RECORDED
    if audit and identifier:
        record = texts.AUDIT.format(seq=audit["seq"], sizing=links.sizing(identifier))
    engine = escape(str(sizing.get("engine_version")))
    return texts.PROVENANCE.format(engine=engine, catalog=escape(digest.removeprefix("sha256:")[:8]), record=record)


def metadata(sizing: Sizing) -> dict[str, Any] | None:
    if not sizing.get("id"):
        return None
    return {"event_type": "trainmem_sizing", "event_payload": {"sizing_id": sizing["id"]}}


def fallback(sizing: Sizing, details: list[str], links: Links) -> str:
    """The whole answer without blocks, the verdict first: a notification shows little more than that."""
    per_gpu, verdict = sizing["per_gpu"], sizing["verdict"]
    needed = per_gpu["usable_bytes"] - per_gpu["headroom_bytes"]
    label, room = headroom_pair(per_gpu["headroom_bytes"])
    lines = [
        f"{texts.VERDICT_WORDS.get(verdict['code'], verdict['code'])}: {escape(verdict['text'])}",
        f"{gauge(needed, per_gpu['usable_bytes'])} {peak_words(sizing, with_gauge=False)}",
        term_line(sizing),
        f"{texts.FIELD_LAYOUT}: {escape(layout_words(per_gpu['layout']))}. {label}: {room}. "
        f"{texts.FIELD_CONFIDENCE}: {confidence_words(per_gpu['peak'])}.",
        *(plain_line(line) for line in (*details, *note_lines(sizing)) if line),
        provenance(sizing, links),
    ]
    return "\n".join(lines)


def plain_line(mrkdwn: str) -> str:
    """Our own mrkdwn without its emphasis, escaped again for the `text` of a message."""
    return escape(plain(mrkdwn))
