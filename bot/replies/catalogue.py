"""What models and GPUs are known."""

from __future__ import annotations

from bot.blocks.catalogue import ROWS_SHOWN, gpus_message, models_message
from bot.blocks.message import Message
from bot.replies.question import Question, Sources


def models(sources: Sources, question: Question, words: str) -> Message:
    return models_message(sources.service.models(words, question.call, limit=ROWS_SHOWN + 1), words)


def gpus(sources: Sources, question: Question, words: str) -> Message:
    return gpus_message(sources.service.gpus(words, question.call, limit=ROWS_SHOWN + 1), words)
