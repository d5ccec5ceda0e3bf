"""Choices that the form offers for keys of a sizing request. The service knows more; any word can be typed."""

from __future__ import annotations

METHODS = ("full", "lora", "qlora")
PRECISIONS = ("bf16-mixed", "fp8", "fp16-mixed", "bf16", "amp", "fp32")
OPTIMIZERS = (
    "adamw",
    "adamw-8bit",
    "adamw-4bit",
    "paged-adamw",
    "adafactor",
    "lion",
    "muon",
    "sgd-momentum",
    "sgd",
)
RECOMPUTE = ("auto", "none", "selective", "full")
