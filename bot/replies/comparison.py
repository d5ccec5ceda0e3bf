"""The same run on several GPUs."""

from __future__ import annotations

from bot.blocks.comparison import comparison_message
from bot.blocks.message import Message
from bot.replies.question import Question, Sources, request_of
from bot.replies.sizing import sized

#: What most clusters have or can rent; `gpu=any` in a command takes every data-centre GPU, and longer.
USUAL_GPUS = ("A100-80G", "H100", "H200", "B200", "MI300X", "MI355X")


def compared_again(sources: Sources, question: Question, identifier: str) -> Message:
    """The question behind a sizing, on the usual GPUs and its own; the service counts one that is named twice once."""
    sizing = sources.service.read_sizing(identifier, question.call)
    asked = request_of(sizing) | {"gpu": [*USUAL_GPUS, sizing["gpu"]["id"]]}
    return comparison_message(sized(sources, question, asked), sources.links)


def compared(sources: Sources, question: Question, rest: str) -> Message:
    """`compare H100,B200 70B seq=8k`, or `compare 70B seq=8k` on the usual GPUs."""
    first, _, run = rest.partition(" ")
    gpus, run = (first, run) if "," in first else (",".join(USUAL_GPUS), rest)
    return comparison_message(sized(sources, question, {"command": f"{run} gpu={gpus}"}), sources.links)
