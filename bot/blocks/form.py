"""The form: a run in fields, pre-filled from what was asked; what has no field goes into one line of words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot import limits, texts, vocabulary
from bot.blocks.elements import Block, Element, mrkdwn, option, plain_text
from bot.blocks.layout import change_words, command_value
from bot.blocks.text import clean, clip, plain
from bot.service_errors import FieldProblem, Rejected

CALLBACK = "size_form"
MODEL, GPU = "form_model", "form_gpu"
"""Action ids of the two selects that ask for options while somebody types."""

View = dict[str, Any]

TEXT_FIELDS = ("sequence_length", "micro_batch", "gpus")
CHOICE_FIELDS = {
    "method": vocabulary.METHODS,
    "precision": vocabulary.PRECISIONS,
    "optimizer": vocabulary.OPTIMIZERS,
    "recompute": vocabulary.RECOMPUTE,
}
MORE = "more"
FIELDS = ("model", "gpu", *TEXT_FIELDS, *CHOICE_FIELDS, MORE)
WORD_CHARS = 150
MORE_CHARS = 1500


def form_view(request: Mapping[str, Any], origin: Mapping[str, Any]) -> View:
    """`request` as flat JSON fills the fields. `origin` comes back with the form: where the answer should go."""
    blocks = [
        type_ahead("model", MODEL, request.get("model")),
        type_ahead("gpu", GPU, request.get("gpu")),
        *(text_field(key, request.get(key)) for key in TEXT_FIELDS),
        *(choice_field(key, request.get(key)) for key in CHOICE_FIELDS),
        text_field(MORE, more_words(request), limit=MORE_CHARS),
    ]
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "title": plain_text(texts.FORM_TITLE, limits.MODAL_TITLE_CHARS),
        "submit": plain_text(texts.FORM_SUBMIT, limits.MODAL_SUBMIT_CHARS),
        "close": plain_text(texts.FORM_CLOSE, limits.MODAL_CLOSE_CHARS),
        "private_metadata": json.dumps(origin),
        "blocks": blocks,
    }


def message_view(words: str) -> View:
    """A view that only says something: while the form is being filled, or why it cannot be."""
    return {
        "type": "modal",
        "title": plain_text(texts.FORM_TITLE, limits.MODAL_TITLE_CHARS),
        "close": plain_text(texts.FORM_CLOSE, limits.MODAL_CLOSE_CHARS),
        "blocks": [{"type": "section", "text": mrkdwn(words, limits.SECTION_TEXT_CHARS)}],
    }


def can_be_changed(request: Mapping[str, Any]) -> bool:
    """Whether the fields can hold the question: not a model or a GPU that was given as an object."""
    return all(isinstance(request.get(key), str | None) for key in ("model", "gpu"))


def read_form(view: Mapping[str, Any]) -> str:
    """The command that the fields say."""
    values = {block: field_value(state) for block, state in view["state"]["values"].items()}
    words = [values.get("model") or ""]
    words += [f"{key}={values[key]}" for key in ("gpu", *TEXT_FIELDS, *CHOICE_FIELDS) if values.get(key)]
    return " ".join(word for word in (*words, values.get(MORE)) if word)


def form_errors(error: Rejected) -> dict[str, str]:
    """Each problem at its field, the rest at the line of words."""
    errors: dict[str, str] = {}
    for problem in error.errors or (FieldProblem(pointer="", detail=error.detail),):
        field = problem.key.partition("/")[0]
        place = field if field in FIELDS else MORE
        errors[place] = clip(f"{errors.get(place, '')} {problem_words(problem)}".strip(), WORD_CHARS * 2)
    return errors


def problem_words(problem: FieldProblem) -> str:
    words = problem.detail.rstrip(".") + "."
    if problem.suggestions:
        words += " " + plain(texts.REFUSED_SUGGESTIONS.format(suggestions=", ".join(problem.suggestions[:3])))
    return words


def type_ahead(key: str, action_id: str, value: Any) -> Block:
    element: Element = {
        "type": "external_select",
        "action_id": action_id,
        "min_query_length": 0,
        "placeholder": plain_text(texts.FORM_PLACEHOLDERS[key], limits.PLACEHOLDER_CHARS),
    }
    if isinstance(value, str) and value and len(value) <= limits.OPTION_VALUE_CHARS:
        element["initial_option"] = option(value, value)
    return input_block(key, element, optional=key != "model")


def text_field(key: str, value: Any, *, limit: int = WORD_CHARS) -> Block:
    element: Element = {
        "type": "plain_text_input",
        "action_id": key,
        "max_length": limit,
        "placeholder": plain_text(texts.FORM_PLACEHOLDERS[key], limits.PLACEHOLDER_CHARS),
    }
    written = command_value(value) if value is not None else ""
    if written and len(written) <= limit:
        element["initial_value"] = written
    return input_block(key, element, optional=True)


def choice_field(key: str, value: Any) -> Block:
    """A menu; a value that it does not offer is in the line of words instead."""
    element: Element = {
        "type": "static_select",
        "action_id": key,
        "placeholder": plain_text(texts.FORM_PLACEHOLDERS[key], limits.PLACEHOLDER_CHARS),
        "options": [option(choice, choice) for choice in CHOICE_FIELDS[key]],
    }
    if is_offered(key, value):
        element["initial_option"] = option(value, value)
    return input_block(key, element, optional=True)


def is_offered(key: str, value: Any) -> bool:
    return isinstance(value, str) and value in CHOICE_FIELDS.get(key, ())


def more_words(request: Mapping[str, Any]) -> str:
    """What no field of its own holds, as words of the command."""
    rest = {
        key: value
        for key, value in request.items()
        if value is not None and key not in ("model", "gpu", *TEXT_FIELDS) and not is_offered(key, value)
    }
    return change_words(rest)


def input_block(key: str, element: Element, *, optional: bool) -> Block:
    block: Block = {
        "type": "input",
        "block_id": key,
        "label": plain_text(texts.FORM_LABELS[key], limits.FIELD_CHARS),
        "element": element,
        "optional": optional,
    }
    hint = texts.FORM_HINTS.get(key)
    return block | ({"hint": plain_text(hint, limits.FIELD_CHARS)} if hint else {})


def field_value(state: Mapping[str, Any]) -> str:
    """Whatever stands in a field, on one line."""
    [element] = state.values()
    chosen = element.get("selected_option")
    return clean(str((chosen or element).get("value") or ""))


def typed_option(typed: str) -> list[Element]:
    """What somebody types is a choice of its own: any size or spelling can be asked, the service answers for it."""
    words = clip(clean(typed), limits.OPTION_VALUE_CHARS)
    return [option(texts.FORM_AS_TYPED.format(typed=words), words)] if words else []
