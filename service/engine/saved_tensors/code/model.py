"""What every program needs to know: the architecture, the dtypes, which attention runs, which masks there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from service.engine.architecture import Architecture, LayerKind
from service.engine.autograd import ops
from service.engine.autograd.storage import Extent, Tensor
from service.engine.autograd.tape import Tape
from service.engine.saved_tensors.units import Unit


class Facts(NamedTuple):
    """Everything about a run that changes which tensors exist; sizes are put in later."""

    stack: str
    compute: str
    weights: str
    autocast: bool
    #: "eager", "sdpa" or "flash"
    attention: str
    #: how many layers are checkpointed whole
    recomputed_layers: int
    #: symbols that equal 1
    ones: frozenset[str]
    #: a sequence as long as the sliding window: a mask is made even where none is needed otherwise
    window_reached: bool = False
    gradients: str = "kept"
    kernels: frozenset[str] = frozenset()
    loss: str = "full"
    logits_dtype: str = "fp32"
    residual: str = ""
    #: the base takes no gradients; adapters sit on `targets`
    frozen: bool = False
    targets: frozenset[str] = frozenset()
    adapter_dtype: str = "fp32"
    adapter_dropout: bool = False
    #: the base's linear weights are stored in 4 bits
    quantised: bool = False
    #: heads wider than flash attention takes
    wide_heads: bool = False


class Around(NamedTuple):
    """What a layer is called with besides its input; a checkpointed call keeps it alive."""

    mask: Tensor | None = None
    cos: Tensor | None = None
    sin: Tensor | None = None
    #: other tensors that the call holds (position ids)
    held: tuple[Tensor, ...] = ()
    #: the mask is passed by position, so a checkpointed call saves it
    by_position: bool = False


@dataclass(slots=True)
class Model:
    """One model while its program runs."""

    tape: Tape
    architecture: Architecture
    facts: Facts
    kinds: tuple[LayerKind, ...]
    units: tuple[Unit, ...]
    kind: LayerKind
    recomputed: bool = False
    #: queries attend to as many heads of their own
    heads: Extent = ()
    kv_heads: Extent = ()
    #: attention probabilities that a layer's code holds in a variable until it returns
    probabilities: list[Tensor] = field(default_factory=list)
    #: what a recomputed layer holds until its backward ends
    held: list[Tensor] = field(default_factory=list)

    def enter_layer(self, index: int, x: Tensor) -> Tensor:
        """The next unit begins: what flows into it belongs to it."""
        self.kind = self.kinds[self.units[index].kind]
        self.recomputed = self.units[index].recomputed
        return self.enter(1 + index, x)

    def leave_layers(self, x: Tensor) -> Tensor:
        """The layers end: what flows out belongs to the tail (final norm, head, loss)."""
        return self.enter(1 + len(self.units), x)

    def enter(self, home: int, x: Tensor) -> Tensor:
        """Another segment begins: what flows into it belongs to it."""
        self.tape.enter(home, "forward")
        if x.storage is not None:
            x.storage.info.home = home
            x.storage.info.label = "layer input"
        return x

    def checkpointed(self, layer: Callable[[Tensor], Tensor], x: Tensor, at: Around) -> Tensor:
        """Run one layer, checkpointed when the run says so."""
        positional = (at.mask,) if at.by_position and at.mask is not None else ()
        return self.called(layer, x, positional)

    def called(self, layer: Callable[[Tensor], Tensor], x: Tensor, positional: Sequence[Tensor] = ()) -> Tensor:
        """Call a layer, checkpointed or not; a checkpointed call saves the tensors that it takes by position."""
        call = partial(self._until_return, layer, self.kind)
        return self.tape.checkpoint(call, x, positional) if self.recomputed else call(x)

    def _until_return(self, layer: Callable[[Tensor], Tensor], kind: LayerKind, x: Tensor) -> Tensor:
        # backward runs a checkpointed layer again when the program has long moved on to layers of another kind
        before, self.kind = self.kind, kind
        if self.facts.frozen and self.tape.replaying is not None and x.node is not None:
            # a frozen base is trained with reentrant checkpointing: the layer's output and what its functions hold
            # outlive their own backward, up to the end of the layer's (fms-acceleration, slopes over tokens)
            held = [self.tape.new(x.shape, x.dtype, "layer output")]
            self.held = held
            x.node.backward = partial(_let_go, held)
        try:
            return layer(x)
        finally:
            self.kind = before
            self.probabilities.clear()

    def hold(self, x: Tensor) -> None:
        """Keep the wide input of a frozen product until the recomputed layer's backward ends."""
        if self.tape.replaying is not None and self.tape.extent("h") != x.shape[-1]:
            self.held.append(Tensor(x.tape, x.storage, x.shape, x.strides, x.dtype))

    def linear(self, x: Tensor, name: str, out: Extent, *, bias: bool = False, label: str = "") -> Tensor:
        """A linear of the model, with its adapter when it is a target."""
        if self.facts.frozen:
            from service.engine.saved_tensors.code import adapters  # it builds on this module

            return adapters.linear(self, x, name, out, bias=bias, label=label)
        return self.plain_linear(x, name, out, bias=bias, label=label)

    def plain_linear(self, x: Tensor, name: str, out: Extent, *, bias: bool = False, label: str = "") -> Tensor:
        """The linear itself, trained or frozen like the rest of the base."""
        weight = self.vector(f"{name}.weight", out, x.shape[-1])
        offset = self.vector(f"{name}.bias", out) if bias else None
        return ops.product(x, weight, offset, label or f"{name} output")

    def vector(self, name: str, *extents: Extent, dtype: str | None = None) -> Tensor:
        """A parameter of this segment (of the whole model, for the embedding table)."""
        whole = name if name in SHARED else f"{self.tape.home}:{name}"
        return self.tape.parameter(whole, extents, dtype or self.facts.weights, trainable=not self.facts.frozen)


def _let_go(held: list[Tensor], grads: list[Tensor | None], saved: list[Tensor]) -> tuple[()]:
    """Backward of a recomputed layer's input: nothing left to do, what the layer held goes with it."""
    return ()


#: parameters that several segments use
SHARED = frozenset({"embedding table"})
