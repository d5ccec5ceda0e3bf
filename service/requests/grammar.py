"""The command grammar: one line of text, as people really type it, into the JSON request it means.

    70B seq=8k mb=2 gpu=H100          llama 3 70b on 64xH100 tp8 pp2 zero=1 ckpt=full:20
    "meta-llama/Llama-3.1-70B" seq = 8192 --micro-batch 2      qlora 8 x a100-80g ctx:128K max=mb

Words come in any order; bare words that are nothing else name the model. The text is split once and read from left to
right without going back, so reading takes time linear in its length. All errors are told at once, each with the place
of the word, what was read, what is allowed and the nearest spelling; nothing is guessed or dropped in silence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from service.engine.errors import FieldError, InvalidInput
from service.requests.keys import KEYS
from service.requests.objects import shown
from service.requests.reader import Place, Reader, placed
from service.requests.text_values import Misread
from service.requests.tokens import Token, Unfinished, normalise, tokens, without_outer_quotes


class Command(NamedTuple):
    """A command that was read: the normalised text, the request it means as far as it could be read, where each key's
    value stands in the text, and what could not be read."""

    text: str
    request: dict[str, Any]
    places: dict[str, Place]
    errors: tuple[FieldError, ...]

    def placed(self, error: FieldError) -> FieldError:
        """An error about a key of this command, with the place where that key was read."""
        place = self.places.get(error.pointer[1:].partition("/")[0])
        return error if place is None or error.position is not None else placed(error, place[0])


def parse(text: str) -> dict[str, Any]:
    """The flat JSON request that a command means, its values not yet checked for range. Raises InvalidInput."""
    command = read_command(text)
    if command.errors:
        raise InvalidInput(command.errors)
    return command.request


def read_command(text: str) -> Command:
    """What can be read of a command, and every error that was found. Raises nothing."""
    try:
        normalised = normalise(text)
    except Misread as misread:
        error = FieldError("/command", f"the command {misread}", shown(text), KEYS["command"].allowed)
        return Command("", {}, {}, (error,))
    line: list[Token] = []
    unfinished: list[FieldError] = []
    try:
        line.extend(tokens(without_outer_quotes(normalised)))
    except Unfinished as error:
        given = shown(normalised[error.position : error.position + 40])
        unfinished.append(
            placed(FieldError("/command", str(error), given, "quotes and braces in pairs"), error.position)
        )
    reader = Reader(normalised, line)
    reader.read()
    return Command(normalised, reader.request, reader.places, (*reader.errors, *unfinished))
