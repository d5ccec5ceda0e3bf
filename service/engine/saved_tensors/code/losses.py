"""From the last hidden states to the loss: the whole vocabulary at once, in slices, or without logits at all."""

from __future__ import annotations

from collections.abc import Callable

from service.engine.autograd import ops
from service.engine.autograd.storage import Tensor
from service.engine.saved_tensors.code import adapters, parts
from service.engine.saved_tensors.code.model import Model


def unchanged(m: Model, logits: Tensor) -> Tensor:
    """Most models take the loss of the logits as they are."""
    return logits


def loss(m: Model, hidden: Tensor, *, then: Callable[[Model, Tensor], Tensor] = unchanged) -> Tensor:
    """Head and loss of a causal language model, as the run asks for them; `then` is what the model does to its logits
    (scaling, a cap)."""
    facts = m.facts
    if facts.loss == "fused":
        return fused_linear(m, hidden)
    if facts.loss == "chunked":
        return in_slices(m, then(m, head(m, hidden)))
    if "cross-entropy" in facts.kernels:
        return in_place(m, then(m, head(m, hidden)))
    return parts.causal_lm_loss(m, then(m, head(m, hidden)))


def head(m: Model, hidden: Tensor) -> Tensor:
    """The projection to the vocabulary, through the embedding table when tied."""
    t, a = m.tape, m.architecture
    with t.part("head"):
        if m.facts.frozen and adapters.is_target(m, "lm_head") and not a.tied_embeddings:
            return adapters.linear(m, hidden, "lm_head", t.extent("V"), bias=False, label="logits")
        name = "embedding table" if a.tied_embeddings else "head"
        weight = m.vector(name, t.extent("V"), hidden.shape[-1])
        bias = m.vector("head.bias", t.extent("V")) if a.head_bias else None
        return ops.product(hidden, weight, bias, "logits")


def in_place(m: Model, logits: Tensor) -> Tensor:
    """Unsloth's cross-entropy kernel in place of torch's: the logits are upcast (and returned to the caller) and
    shifted as in transformers of 2024; the kernel keeps the shifted ones and writes their gradient over them."""
    t = m.tape
    with t.part("loss"):
        wide = ops.to(logits, m.facts.logits_dtype, "logits in the loss's dtype")
        del logits
        flat = ops.reshape(ops.clone(wide, "shifted logits"), (t.extent("b", "s"), t.extent("V")))
        slots = [t.save(flat, "cross-entropy kernel"), t.save(t.new((flat.shape[0],), "fp32", "log-sum-exp"), "kernel")]
        out = t.new((), "fp32", "loss")
        out.node = t.node("cross-entropy kernel", (flat,), slots, lambda grads, saved: [saved[0]])
        return out


def in_slices(m: Model, logits: Tensor) -> Tensor:
    """Whole logits, cross-entropy a slice of the tokens at a time (litgpt, torchtune): every slice keeps its
    log-softmax, the caller keeps the logits."""
    t = m.tape
    with t.part("loss"):
        vocabulary, tokens = t.extent("V"), t.extent("b", "s")
        logs = t.new((tokens, vocabulary), m.facts.logits_dtype, "log-softmax of the logits")
        slots = [t.save(logs, "log_softmax")]
        dtype, shape, held = logits.dtype, logits.shape, logits
        del logs

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            assert held.storage is not None
            slices = t.new((t.extent("b", "s"), vocabulary), dtype, "gradients of the slices")
            joined = t.new(shape, dtype, "gradient of the logits")
            del slices
            return [joined]

        out = t.new((), "fp32", "loss")
        out.node = t.node("cross-entropy in slices", (logits,), slots, backward)
        return out


def fused_linear(m: Model, hidden: Tensor) -> Tensor:
    """Liger's fused linear cross-entropy: forward goes over slices whose logits are as large as the hidden states and
    forms both gradients at once; logits never exist whole."""
    t, a = m.tape, m.architecture
    with t.part("loss"):
        name = "embedding table" if a.tied_embeddings else "head"
        weight = m.vector(name, t.extent("V"), hidden.shape[-1])
        dtype, shape = hidden.dtype, hidden.shape
        slots = [t.save(t.new(shape, dtype, "gradient of the head input"), "fused linear cross-entropy")]
        if weight.needs_grad:
            of_weight = t.new(weight.shape, weight.dtype, "gradient of the head")
            slots.append(t.save(of_weight, "fused linear cross-entropy"))
            del of_weight
        slice_ = t.new((t.extent("lc"), t.extent("V")), dtype, "logits of a slice")
        wide = t.new((t.extent("lc"), t.extent("V")), "fp32", "logits of a slice in fp32")
        del slice_, wide
        out = t.new((), "fp32", "loss")

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            return [saved[0], saved[1] if len(saved) > 1 else None]

        out.node = t.node("fused linear cross-entropy", (hidden, weight), slots, backward)
        return out
