"""Deciding on a sizing: the form, and how a decision reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot import limits, texts
from bot.blocks.elements import Block, Element, mrkdwn, option, plain_text, section
from bot.blocks.form import GPU, View, field_value, problem_words
from bot.blocks.links import Links
from bot.blocks.message import Message
from bot.blocks.sizing import headline
from bot.blocks.text import clip, code, escape, plain
from bot.service_errors import FieldProblem, Rejected

CALLBACK = "decision_form"
FIELDS = ("decision", "gpus_granted", "gpu", "reason")
REASON_CHARS = 2000
ERROR_CHARS = 300
REASON_SHOWN_CHARS = 500


def decision_view(sizing: Mapping[str, Any], origin: Mapping[str, Any]) -> View:
    """What is decided on, then the decision. `origin` comes back with the form."""
    title, _ = headline(sizing)
    granted: Element = {
        "type": "number_input",
        "action_id": "gpus_granted",
        "is_decimal_allowed": False,
        "min_value": "1",
        "placeholder": plain_text(texts.DECISION_AS_ASKED, limits.PLACEHOLDER_CHARS),
    }
    gpu: Element = {
        "type": "external_select",
        "action_id": GPU,
        "min_query_length": 0,
        "placeholder": plain_text(texts.DECISION_AS_ASKED, limits.PLACEHOLDER_CHARS),
    }
    reason: Element = {
        "type": "plain_text_input",
        "action_id": "reason",
        "multiline": True,
        "max_length": REASON_CHARS,
        "placeholder": plain_text(texts.DECISION_REASON, limits.PLACEHOLDER_CHARS),
    }
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": plain_text(texts.DECISION_TITLE, limits.MODAL_TITLE_CHARS),
        "submit": plain_text(texts.DECISION_SUBMIT, limits.MODAL_SUBMIT_CHARS),
        "close": plain_text(texts.FORM_CLOSE, limits.MODAL_CLOSE_CHARS),
        "private_metadata": json.dumps({**origin, "sizing": sizing["id"]}),
        "blocks": [
            section(f"*{escape(sizing['model']['name'].replace('*', ''))}*\n{escape(title)}"),
            _field("decision", _choices(), optional=False),
            _field("gpus_granted", granted, optional=True),
            _field("gpu", gpu, optional=True),
            _field("reason", reason, optional=True),
        ],
    }


def read_decision(view: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the decision; the service judges it. A reason keeps its lines."""
    values = view["state"]["values"]
    read: dict[str, Any] = {name: field_value(values[name]) for name in ("decision", "gpus_granted", "gpu")}
    if read["gpus_granted"]:
        read["gpus_granted"] = int(read["gpus_granted"])
    [reason] = values["reason"].values()
    read["reason"] = str(reason.get("value") or "").strip()
    return {name: value for name, value in read.items() if value}


def decision_errors(error: Rejected) -> dict[str, str]:
    """Each problem at its field; what has none stands at the decision."""
    errors: dict[str, str] = {}
    for problem in error.errors or (FieldProblem(pointer="", detail=error.detail),):
        place = problem.key if problem.key in FIELDS else "decision"
        errors[place] = clip(f"{errors.get(place, '')} {problem_words(problem)}".strip(), ERROR_CHARS)
    return errors


def decision_message(decision: Mapping[str, Any], model: str, links: Links) -> Message:
    """ "✅ *Approved* by @ann: 16 × h100 for llama-3.1-70b", the reason, where it is recorded."""
    line = decision_line(decision, model)
    record = texts.AUDIT.format(seq=decision["audit"]["seq"], sizing=links.sizing(decision["sizing_id"]))
    blocks: list[Block] = [section(line), {"type": "context", "elements": [mrkdwn(record, limits.FIELD_CHARS)]}]
    return Message(text=escape(plain(line)), parts=tuple(blocks))


def decision_line(decision: Mapping[str, Any], model: str) -> str:
    words = texts.DECIDED[decision["decision"]].format(by=person(decision["decided_by"]))
    if decision.get("gpus_granted"):
        granted = f"{decision['gpus_granted']} × {decision['gpu']}"
        words += texts.DECIDED_GRANTS.format(granted=escape(granted), model=escape(model))
    else:
        words += texts.DECIDED_ON.format(model=escape(model))
    reason = decision.get("reason")
    return words + (f"\n>{escape(clip(' '.join(str(reason).split()), REASON_SHOWN_CHARS))}" if reason else "")


def person(caller: str) -> str:
    """Somebody in Slack by name, anybody else as the record names them."""
    kind, _, rest = caller.partition(":")
    user = rest.rpartition("/")[2]
    return f"<@{user}>" if kind == "slack" and user.isalnum() and user.isupper() else code(caller)


def _choices() -> Element:
    options = [option(words, value) for value, words in texts.DECISIONS.items()]
    return {"type": "radio_buttons", "action_id": "decision", "options": options, "initial_option": options[0]}


def _field(name: str, element: Element, *, optional: bool) -> Block:
    label = plain_text(texts.DECISION_LABELS[name], limits.FIELD_CHARS)
    return {"type": "input", "block_id": name, "label": label, "element": element, "optional": optional}
