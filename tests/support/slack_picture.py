"""Draws payloads roughly as Slack shows them, to be looked at and for the pictures of docs/slack.md.

    python -m tests.support.slack_picture docs/images

Needs Chromium. The payloads are what the bot sends for the recorded sizings of tests/bot/data.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bot.blocks.explanation import explanation_message
from bot.blocks.form import form_view
from bot.blocks.links import Links
from bot.blocks.problems import problem_message
from bot.blocks.sizing import sizing_message
from bot.service_errors import FieldProblem, Rejected
from tests.support.fake_service import sizing

PHONE_PX, DESK_PX = 390, 760
STYLE = """
body { margin: 0; background: #fff; color: #1d1c1d; font: 15px/1.46 "Liberation Sans", Arial, sans-serif; }
.message { padding: 14px 16px 10px 58px; position: relative; }
.message::before { content: "tm"; position: absolute; left: 14px; top: 16px; width: 34px; height: 34px;
  line-height: 34px; border-radius: 6px; background: #1f3a5f; color: #fff; text-align: center; font-weight: 700; }
.who { font-weight: 700; } .who span { font-weight: 400; color: #616061; font-size: 12px; }
h1 { font-size: 18px; line-height: 1.3; margin: 6px 0; } .section { margin: 6px 0; }
.fields { display: grid; grid-template-columns: 1fr 1fr; gap: 8px 16px; margin: 8px 0; }
.context { color: #616061; font-size: 12.5px; margin: 6px 0; }
code { font: 12.5px "Liberation Mono", monospace; color: #c01343; background: #f6f6f6; border: 1px solid #ddd;
  border-radius: 3px; padding: 1px 3px; }
pre { font: 12px/1.4 "Liberation Mono", monospace; background: #f6f6f6; border: 1px solid #ddd; border-radius: 4px;
  padding: 8px; overflow: hidden; }
a { color: #1264a3; text-decoration: none; }
.table { border: 1px solid #ddd; border-radius: 8px; margin: 8px 0; overflow: hidden; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
td { border-top: 1px solid #eee; padding: 5px 8px; vertical-align: top; }
tr:first-child td { border-top: 0; background: #f8f8f8; }
td + td { border-left: 1px solid #eee; } .right { text-align: right; }
.actions { margin: 8px 0; display: flex; flex-wrap: wrap; gap: 8px; }
.button { border: 1px solid #bbb; border-radius: 6px; padding: 4px 12px; font-weight: 700; font-size: 13.5px; }
.menu::after { content: " ▾"; color: #616061; }
.input { margin: 12px 0; } .input b { display: block; margin-bottom: 3px; }
.optional { color: #616061; font-weight: 400; }
.box { border: 1px solid #bbb; border-radius: 5px; padding: 6px 10px; min-height: 20px; }
.box.empty { color: #8d8d8d; } .hint { color: #616061; font-size: 12.5px; }
.modal { padding: 10px 20px 16px; } .modal h1 { font-size: 20px; }
.mark { display: inline-block; width: 1.15em; height: 1.15em; line-height: 1.15em; border-radius: 4px; color: #fff;
  text-align: center; font-size: .85em; }
.ok { background: #2eb67d; } .tight { background: #e8a317; } .no { background: #d72b3f; }
"""
MARKS = {
    "✅": '<span class="mark ok">✓</span>',
    "⚠️": '<span class="mark tight">!</span>',
    "⛔": '<span class="mark no">–</span>',
}


def page(payload: dict[str, Any]) -> str:
    """A message or a modal as HTML."""
    body = "".join(block(one) for one in payload["blocks"])
    if payload.get("type") == "modal":
        submit = f'<div class="actions"><span class="button">{payload["submit"]["text"]}</span></div>'
        shown = f'<div class="modal"><h1>{payload["title"]["text"]}</h1>{body}{submit}</div>'
    else:
        shown = (
            f'<div class="message"><div class="who">trainmem <span>APP · Only visible to you</span></div>{body}</div>'
        )
    for mark, drawn in MARKS.items():
        shown = shown.replace(mark, drawn)
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>{shown}"


def block(one: dict[str, Any]) -> str:
    kind = one["type"]
    if kind == "header":
        return f"<h1>{html.escape(one['text']['text'])}</h1>"
    if kind == "section":
        text = f'<div class="section">{mrkdwn(one["text"]["text"])}</div>' if "text" in one else ""
        fields = "".join(f"<div>{mrkdwn(field['text'])}</div>" for field in one.get("fields", []))
        return text + (f'<div class="fields">{fields}</div>' if fields else "")
    if kind == "context":
        return f'<div class="context">{" ".join(mrkdwn(part["text"]) for part in one["elements"])}</div>'
    if kind == "table":
        return table(one)
    if kind == "actions":
        return f'<div class="actions">{"".join(press(part) for part in one["elements"])}</div>'
    if kind == "input":
        return field(one)
    return f"<pre>{html.escape(cell_text(one))}</pre>"


def press(part: dict[str, Any]) -> str:
    menu = " menu" if "options" in part else ""
    return f'<span class="button{menu}">{html.escape((part.get("text") or part["placeholder"])["text"])}</span>'


def table(one: dict[str, Any]) -> str:
    settings = one["column_settings"]
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td class="{settings[column]["align"]}">{"<b>" if number == 0 else ""}{html.escape(cell_text(cell))}</td>'
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for number, row in enumerate(one["rows"])
    )
    return f'<div class="table"><table>{rows}</table></div>'


def cell_text(cell: dict[str, Any]) -> str:
    if "elements" not in cell:
        return str(cell.get("text", ""))
    return "".join(cell_text(part) for part in cell["elements"])


def field(one: dict[str, Any]) -> str:
    element = one["element"]
    value = element.get("initial_value") or element.get("initial_option", {}).get("text", {}).get("text")
    shown = html.escape(value or element["placeholder"]["text"])
    optional = ' <span class="optional">(optional)</span>' if one["optional"] else ""
    hint = f'<div class="hint">{html.escape(one["hint"]["text"])}</div>' if "hint" in one else ""
    menu = " menu" if "select" in element["type"] else ""
    box = f'<div class="box{menu}{"" if value else " empty"}">{shown}</div>'
    return f'<div class="input"><b>{one["label"]["text"]}{optional}</b>{box}{hint}</div>'


def mrkdwn(text: str) -> str:
    """Entities are HTML's already."""
    linked = re.sub(r"<(https?:[^|>]+)\|([^>]+)>", r'<a href="\1">\2</a>', text)
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", linked)
    return re.sub(r"(?<!\w)\*([^*\n]+)\*", r"<b>\1</b>", coded).replace("\n", "<br>")


def draw(payload: dict[str, Any], path: Path, *, width_px: int, height_px: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(page(payload), encoding="utf-8")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1.5",
        ]
        size = f"--window-size={width_px},{height_px}"
        command = [
            "chromium",
            *options,
            size,
            f"--user-data-dir={folder}/profile",
            f"--screenshot={path}",
            source.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def pictures() -> dict[str, tuple[dict[str, Any], int, int]]:
    """File name → payload, width, height."""
    links, tight = Links("https://trainmem.example.org"), sizing("sizing-70b-tight")
    wrong = FieldProblem("/gpu", "H1000 is not a GPU of the catalogue", "H1000", None, ("H100", "H800", "H200"))
    refusal = problem_message(Rejected("", errors=(wrong,), cause=""), read="70B gpu=H1000", request_id="k7q2m9xw")
    form = form_view({"model": "llama-3.1-70b", "gpu": "h100", "sequence_length": 8192, "micro_batch": 2}, {})
    answer = next(sizing_message(tight, links).payloads(charts=False))
    return {
        "slack-answer.png": (answer, DESK_PX, 950),
        "slack-answer-phone.png": (answer, PHONE_PX, 1655),
        "slack-explain.png": (explanation_message(tight, "activations", links).payload(), DESK_PX, 470),
        "slack-refusal.png": (refusal.payload(), DESK_PX, 196),
        "slack-form.png": (form, 520, 850),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (payload, width_px, height_px) in pictures().items():
        draw(payload, (folder / name).resolve(), width_px=width_px, height_px=height_px)
