"""What every program needs to know: the architecture, the dtypes, which attention runs, which masks there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from service.engine.architecture import Architecture, LayerKind
from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.autograd.tape import Tape


class Facts(NamedTuple):
    """Everything about a run that changes which tensors exist; sizes are put in later."""

    stack: str
    compute: str
    weights: str
    autocast: bool
    #: "eager", "sdpa" or "flash"
    attention: str
    #: whole layers are checkpointed
    checkpoint: bool
    #: symbols that equal 1
    ones: frozenset[str]
    #: a sequence as long as the sliding window: a mask is made even where none is needed otherwise
    window_reached: bool = False
    gradients: str = "kept"
    kernels: frozenset[str] = frozenset()
    loss: str = "full"
    logits_dtype: str = "fp32"
    residual: str = ""
    frozen: bool = False
    adapters: tuple[str, ...] = ()
    adapter_dtype: str = "fp32"
    adapter_dropout: bool = False
    compiled: bool = False
    #: heads wider than flash attention takes
    wide_heads: bool = False


@dataclass(slots=True)
class Model:
    """One model while its program runs."""

    tape: Tape
    architecture: Architecture
    facts: Facts
    kinds: tuple[LayerKind, ...]
    kind: LayerKind
    #: queries attend to as many heads of their own
    heads: Extent = ()
    kv_heads: Extent = ()

    def enter_layer(self, index: int, x: Tensor) -> Tensor:
        """The next kind of layer begins: what flows into it belongs to it."""
        self.kind = self.kinds[index]
        return self._enter(1 + index, x)

    def leave_layers(self, x: Tensor) -> Tensor:
        """The layers end: what flows out belongs to the tail (final norm, head, loss)."""
        return self._enter(1 + len(self.kinds), x)

    def _enter(self, home: int, x: Tensor) -> Tensor:
        self.tape.enter(home, "forward")
        if x.storage is not None:
            x.storage.info.home = home
            x.storage.info.label = "layer input" if home <= len(self.kinds) else "last layer's output"
        return x

    def checkpointed(self, layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Run one layer, checkpointed when the run says so."""
        return self.tape.checkpoint(layer, x) if self.facts.checkpoint else layer(x)

    def linear(self, x: Tensor, name: str, out: Extent, *, bias: bool = False, label: str = "") -> Tensor:
        """A linear of the model, with its adapter when it is a target."""
        return ops.linear(x, name, out, bias=bias, label=label, trainable=not self.facts.frozen)

    def vector(self, name: str, *extents: Extent) -> Tensor:
        """A norm's weight or another small parameter."""
        return self.tape.parameter(name, extents, self.facts.weights, trainable=not self.facts.frozen)
