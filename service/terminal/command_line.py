"""Words as the shell split them, as one line of text for the command grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from service.requests.keys import find_key


def command_text(words: Sequence[str]) -> str:
    """The command that the words of a command line are. A name that the shell kept whole stays whole."""
    return " ".join(_texts(words))


def _texts(words: Sequence[str]) -> Iterator[str]:
    flag = ""
    for word in words:
        if flag and not word.startswith("-"):
            yield _value(flag, word)
            flag = ""
        elif word.startswith("-") and "=" in word:
            name, _, value = word.partition("=")
            yield f"{name}={_value(name, value)}"
            flag = ""
        else:
            yield word
            flag = word if word.startswith("-") else ""


def _value(flag: str, text: str) -> str:
    """The value of a flag, in quotes where the grammar would split a name: --gpu "RTX PRO 6000"."""
    key = find_key(flag.lstrip("-"))
    if key is None or key.kind not in ("model", "gpu") or not text or text[0] in "{[\"'":
        return text
    return json.dumps(text, ensure_ascii=False) if " " in text and "," not in text else text
