"""Why an operation saves a tensor, and where torch says so."""

from __future__ import annotations

_REASONS = {
    "mm": "the weight gradient is the product of this input with the output's gradient",
    "bmm": "each factor of a batched product is needed for the gradient of the other",
    "mul": "each factor of a product is needed for the gradient of the other",
    "pow": "the derivative of a power is taken at its input",
    "rsqrt": "the derivative of 1/√x is formed from the result",
    "softmax": "softmax backward works on its result",
    "log_softmax": "cross-entropy backward is softmax minus one-hot",
    "nll_loss": "the loss gradient is scattered to the target entries",
    "silu": "the derivative of the activation is taken at its input",
    "gelu": "the derivative of the activation is taken at its input",
    "relu": "the result says which elements were cut off",
    "tanh": "the derivative of tanh is formed from the result",
    "sigmoid": "the derivative of the sigmoid is formed from the result",
    "layer_norm": "layer norm backward needs its input and the statistics of each row",
    "rms_norm": "RMS norm backward needs its input and the scale of each row",
    "native_dropout": "backward must drop the same elements",
    "embedding": "the table's gradient is scattered to these rows",
    "checkpoint": "backward runs this layer's forward again from here",
    "flash attention": "flash attention computes the probabilities again from queries, keys and the log-sum-exp",
    "efficient attention": "memory-efficient attention computes the probabilities again from queries, keys, mask",
    "masked_fill": "the mask says where no gradient flows",
    "grouped_mm": "each factor of a grouped product is needed for the gradient of the other",
    "index": "gradients are scattered back by these indices",
    "gather": "gradients are scattered back by these indices",
    "sort": "gradients are put back in the order before sorting",
    "topk": "gradients are scattered back to the chosen entries",
    "scatter": "gradients are gathered by these indices",
    "div": "the derivative of a quotient needs numerator and denominator",
    "max": "the gradient goes to the place of the maximum",
    "clamp": "the input says which elements were cut off",
    "math": "",
}
_CHECKPOINT = "Chen et al., arXiv:1604.06174; torch/utils/checkpoint.py"
_DERIVATIVES = "torch 2.13 tools/autograd/derivatives.yaml"


def reason(operation: str, kind: str) -> str:
    """One line for a row: why the tensor is alive."""
    if kind == "cast":
        return "matrix products run in 16 bits while the stored weights are fp32"
    if kind == "gradient":
        return "the gradient of a parameter, just computed"
    return _REASONS.get(operation, "alive while the operations around it run")


def source_of(operation: str) -> str:
    """Where the habit is written down."""
    if operation == "checkpoint":
        return _CHECKPOINT
    return (
        f"{_DERIVATIVES}: {operation}"
        if operation in _REASONS
        else "torch/csrc/autograd/engine.cpp: order and lifetimes"
    )
