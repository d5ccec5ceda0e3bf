"""Which program stands for which modelling code (hf model_type)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.engine.architecture import Architecture
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import (
    bert,
    bloom,
    deepseek,
    falcon,
    gemma,
    gpt2,
    gpt_neox,
    gpt_oss,
    llama,
    opt,
    phi3,
    t5,
)  # fmt: skip
from service.engine.saved_tensors.code.model import Model

Program = Callable[[Model], Tensor]

#: forward up to the loss, by the name of the modelling code
PROGRAMS: Mapping[str, Program] = {
    "bert": bert.masked_lm,
    "bloom": bloom.causal_lm,
    "deepseek_v2": deepseek.causal_lm,
    "deepseek_v3": deepseek.causal_lm,
    "deepseek_v32": deepseek.causal_lm,
    "glm4_moe_lite": deepseek.causal_lm,
    "glm_moe_dsa": deepseek.causal_lm,
    "falcon": falcon.causal_lm,
    "gemma": gemma.causal_lm,
    "gemma2": gemma.causal_lm,
    "gemma3": gemma.causal_lm,
    "gemma3_text": gemma.causal_lm,
    "gpt2": gpt2.causal_lm,
    "gpt_neox": gpt_neox.causal_lm,
    "gpt_oss": gpt_oss.causal_lm,
    "opt": opt.causal_lm,
    "phi3": phi3.causal_lm,
    "roberta": bert.masked_lm,
    "xlm-roberta": bert.masked_lm,
    "t5": t5.seq2seq_lm,
    "mt5": t5.seq2seq_lm,
}


def program(architecture: Architecture) -> Program:
    """The program of a model; Llama's for what has none of its own."""
    return PROGRAMS.get(architecture.code, llama.causal_lm)
