"""Which facts of a run decide what tensors exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.engine.architecture import Architecture
from service.engine.recipe import QUANTIZED_BASES
from service.engine.saved_tensors.code.model import Facts
from service.engine.stage import Prepared

#: widest head that flash attention takes
FLASH_MAX_HEAD = 256


def facts_of(prepared: Prepared, *, one_sequence: bool) -> Facts:
    """The facts of this run; `one_sequence` says that its micro-batch is 1."""
    a, run, recipe = prepared.architecture, prepared.run, prepared.recipe
    ones = set()
    if one_sequence:
        ones.add("b")
    if a.kv_heads == 1:
        ones.add("kv")
    if a.heads == a.kv_heads or a.mla is not None:
        ones.add("g")
    gathered = prepared.layout.shard == "parameters"
    full = run.recompute.kind == "full"
    return Facts(
        stack=prepared.stack.name,
        compute=recipe.compute,
        weights=_weights(prepared),
        autocast=recipe.compute != "fp32" and ((recipe.casts and not gathered) or _wide_adapters(prepared)),
        attention="eager" if a.attention_softcap and run.attention == "sdpa" else run.attention,
        recomputed_layers=(a.layers if run.recompute.full_layers is None else run.recompute.full_layers) if full else 0,
        ones=frozenset(ones),
        window_reached=a.sliding_window is not None and run.sequence_length >= a.sliding_window,
        gradients=gradients_of(prepared),
        kernels=run.kernels,
        loss=run.loss,
        logits_dtype=run.logits_dtype,
        residual=run.residual_dtype or "",
        frozen=recipe.frozen_base,
        targets=frozenset(recipe.lora_targets) if recipe.frozen_base else frozenset(),
        adapter_dtype=recipe.adapter_dtype,
        adapter_dropout=run.lora_dropout > 0,
        quantised=recipe.frozen_base and recipe.base_weights in QUANTIZED_BASES,
        wide_heads=a.head_dim > FLASH_MAX_HEAD,
    )


def _wide_adapters(prepared: Prepared) -> bool:
    """fp32 adapters on a 16-bit base: such runs are under autocast, which brings their products back to 16 bits."""
    recipe = prepared.recipe
    return recipe.frozen_base and recipe.adapter_dtype == "fp32"


def _weights(prepared: Prepared) -> str:
    """dtype in which modules see their weights: gathered ones come in the compute dtype, a frozen base as it is stored
    (4-bit weights dequantise to the compute dtype)."""
    recipe, gathered = prepared.recipe, prepared.layout.shard == "parameters"
    if recipe.frozen_base:
        whole = recipe.base_weights in ("fp32", "bf16", "fp16") and not gathered
        return recipe.base_weights if whole else recipe.compute
    return recipe.compute if recipe.casts and gathered else recipe.weights


def gradients_of(prepared: Prepared) -> str:
    """Whether weight gradients stay as backward makes them, join ones that wait, or are the sharding's business."""
    if prepared.layout.shard == "parameters" or prepared.run.optimizer_impl == "in-backward":
        return "unseen"
    waiting = prepared.stack.gradients_persist or bool(np.max(prepared.run.micro_batches) > 1)
    return "added" if waiting else "kept"


def program_architecture(prepared: Prepared) -> Architecture:
    """The architecture as its code spells it. Code that keeps its logits in 16 bits is not transformers' but of
    lit-gpt's kind (also MPT, GPTBigCode): queries, keys and values come from one projection."""
    a, run = prepared.architecture, prepared.run
    if a.code == "generic" and run.logits_dtype != "fp32" and a.mla is None and a.encoder is None:
        return replace(a, fused_qkv=True)
    return a
