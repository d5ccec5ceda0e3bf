"""The tape: runs programs, counts what is alive, and remembers the fullest instants of every part of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from service.engine.autograd.graph import (
    Accumulate,
    Backward,
    Frame,
    Node,
    Slot,
    StopRecomputation,
    run_backward,
)
from service.engine.autograd.storage import (
    Extent,
    Info,
    Monomial,
    Shape,
    Storage,
    Tensor,
    contiguous_strides,
    sizes_of,
)


class Instant(NamedTuple):
    """One of the fullest instants of a segment: everything alive then."""

    total: dict[Monomial, int]
    alive: tuple[Info, ...]


class Tape:
    """Runs one program over symbolic tensors.

    `ones` are the symbols that equal 1 in this run (which changes what is contiguous); `autocast` is the 16-bit dtype
    of torch.autocast, or None; `frozen` says which parameters take no gradient; `gradients` whether weight gradients
    stay once they were made ("kept"), are added to ones that exist already ("added") or are not looked at ("unseen").
    """

    def __init__(
        self,
        ones: frozenset[str] = frozenset(),
        *,
        autocast: str | None = None,
        gradients: str = "kept",
        weights: str = "bf16",
    ) -> None:
        self.ones = ones
        self.autocast = autocast
        self.gradients = gradients
        #: dtype that parameters are stored in
        self.weights = weights
        #: the mathematics kernel repeats key heads itself (enable_gqa)
        self.grouped_math = True
        self.home = 0
        self.phase = "forward"
        self.module = ""
        self.regions: tuple[str, ...] = ()
        self.infos: list[Info] = []
        self.live: dict[int, Info] = {}
        self.total: dict[Monomial, int] = {}
        self.instants: dict[tuple[str, int], list[Instant]] = {}
        self.frame: Frame | None = None
        self.replaying: Frame | None = None
        self._rising = False
        self._order = 0
        self._leaves: dict[str, Tensor] = {}
        self._casts: dict[str, Tensor] = {}
        self._gradients: dict[str, Tensor] = {}
        self._leaf_gradients: list[Tensor] = []

    # what exists

    def extent(self, *symbols: str) -> Extent:
        """A product of symbols, without those that equal 1."""
        return tuple(symbol for symbol in symbols if symbol not in self.ones)

    def shape(self, words: str) -> Shape:
        """A shape in words: "b s kv*g d"; a word 1 is an extent of 1."""
        return tuple(self.extent(*word.split("*")) if word != "1" else () for word in words.split())

    def new(
        self, shape: Shape, dtype: str, label: str, *, strides: tuple[int, ...] | None = None, kind: str = "activation"
    ) -> Tensor:
        """A fresh storage."""
        info = Info(len(self.infos), shape, dtype, label, self.module, kind, self.home)
        info.regions = self.regions
        self.infos.append(info)
        self.live[info.number] = info
        self.total[info.key] = self.total.get(info.key, 0) + info.itemsize
        self._rising = True
        return Tensor(self, Storage(self, info), shape, strides or contiguous_strides(sizes_of(shape)), dtype)

    def external(self, shape: Shape, dtype: str) -> Tensor:
        """A tensor whose bytes are counted elsewhere: a parameter, token ids, a scalar on the host."""
        return Tensor(self, None, shape, contiguous_strides(sizes_of(shape)), dtype)

    def parameter(self, name: str, shape: Shape, dtype: str, *, trainable: bool = True) -> Tensor:
        """A parameter; asked for again, it is the same one."""
        if name not in self._leaves:
            leaf = self.external(shape, dtype)
            leaf.parameter = name
            if trainable:
                leaf.node = Accumulate(name, self.home)
            self._leaves[name] = leaf
        return self._leaves[name]

    def leaf(self, tensor: Tensor, name: str) -> Tensor:
        """A tensor that is no parameter but asks for a gradient of its own: both live until backward ends."""
        tensor.node = Accumulate(name, self.home, variable=_detached(tensor))
        return tensor

    def freed(self, info: Info) -> None:
        """Called when the last reference to a storage goes."""
        if self._rising:
            self._remember()
        del self.live[info.number]
        self.total[info.key] -= info.itemsize

    def _remember(self) -> None:
        """A local maximum: the total was rising and is about to fall."""
        self._rising = False
        self.instants.setdefault((self.phase, self.home), []).append(
            Instant(dict(self.total), tuple(self.live.values()))
        )

    def enter(self, home: int, phase: str) -> None:
        """From here on, instants belong to this segment."""
        if self._rising:
            self._remember()
        self.home = home
        self.phase = phase
        self._rising = True

    @contextmanager
    def part(self, module: str, *, region: str = "") -> Iterator[None]:
        """A module of the model; `region` names the recompute policy that drops what it makes."""
        before = self.module, self.regions
        self.module = module
        if region:
            self.regions = (*self.regions, region)
        try:
            yield
        finally:
            self.module, self.regions = before

    @contextmanager
    def no_autocast(self) -> Iterator[None]:
        """Inside an operation that autocast handled as a whole, its parts are left alone."""
        before, self.autocast = self.autocast, None
        try:
            yield
        finally:
            self.autocast = before

    # what is saved

    def save(self, tensor: Tensor, operation: str) -> Slot:
        """Save a tensor for backward; inside a checkpointed call only a promise of it."""
        if self.replaying is not None:
            self.replaying.keep(_detached(tensor))
            return Slot(_detached(tensor))
        if self.frame is not None:
            return Slot(None, self.frame, self.frame.promise())
        if tensor.storage is not None:
            tensor.storage.info.savers.append((operation, self.regions))
        return Slot(_detached(tensor))

    def record(self, name: str, inputs: Sequence[Tensor], slots: list[Slot], out: Tensor, backward: Backward) -> Tensor:
        """Hang `out` into the graph."""
        out.node = self.node(name, inputs, slots, backward)
        return out

    def node(self, name: str, inputs: Sequence[Tensor], slots: list[Slot], backward: Backward) -> Node:
        self._order += 1
        return Node(name, self._order, self.home, inputs, slots, backward)

    def checkpoint(self, function: Callable[[Tensor], Tensor], tensor: Tensor, others: Sequence[Tensor] = ()) -> Tensor:
        """Run `function` and keep only its input (non-reentrant checkpointing; keyword arguments stay alive too).

        `others` are tensors that the call takes by position: those are saved like the input.
        """
        kept = self.save(tensor, "checkpoint")
        for other in others:
            self.save(other, "checkpoint")
        frame = Frame(lambda: function(_attached(kept)))
        self.frame = frame
        try:
            return function(tensor)
        finally:
            self.frame = None

    def recompute(self, frame: Frame) -> None:
        """Forward of a checkpointed call once more, up to the last tensor that backward needs."""
        before = self.home, self.module, self.regions, self._casts
        self._casts = {}
        self.replaying = frame
        try:
            frame.again()
        except StopRecomputation:
            pass
        finally:
            self.replaying = None
            self.home, self.module, self.regions, self._casts = before

    # what backward needs

    def backward(self, loss: Tensor) -> None:
        """Run backward from a scalar loss. The caller must let go of `loss` by passing its only reference."""
        node = loss.node
        assert node is not None
        gradient = self.new((), loss.dtype, "gradient of the loss")
        run_backward(self, node, gradient)

    def collect(self, node: Accumulate, grads: list[Tensor | None]) -> None:
        """Keep the gradient of a parameter, or add it to what is there."""
        gradient = grads.pop()
        if gradient is None or gradient.storage is None:
            return
        if node.variable is not None:
            self._leaf_gradients += [gradient, node.variable]
            return
        gradient.storage.info.kind = "gradient"
        gradient.storage.info.home = node.home
        if self.gradients == "kept":
            self._gradients[node.parameter] = gradient

    def fit(self, gradient: Tensor, meta: tuple[Shape, str]) -> Tensor:
        """A gradient in the shape and dtype of what it is the gradient of."""
        shape, dtype = meta
        if gradient.shape != shape and sizes_of(gradient.shape) != sizes_of(shape):
            gradient = self.new(shape, gradient.dtype, "sum over broadcast dimensions")
        if gradient.dtype != dtype:
            gradient = self.new(gradient.shape, dtype, "gradient cast back")
        return gradient

    def add_gradients(self, old: Tensor, new: Tensor) -> Tensor:
        return self.new(new.shape, new.dtype, "sum of gradients", strides=old.strides if 0 not in old.strides else None)

    def cast_weight(self, weight: Tensor, dtype: str) -> Tensor | None:
        """Autocast's cached 16-bit copy of a parameter, if there is one."""
        return self._casts.get(weight.parameter or "")

    def cache_cast(self, weight: Tensor, copy: Tensor) -> None:
        assert weight.parameter is not None and copy.storage is not None
        copy.storage.info.kind = "cast"
        self._casts[weight.parameter] = copy

    def leave_autocast(self) -> None:
        """The outermost autocast context ends: its cache of weight copies goes."""
        self._casts = {}

    def close(self) -> None:
        """Let go of everything that the tape itself holds."""
        if self._rising:
            self._remember()
        self._casts, self._gradients, self._leaves = {}, {}, {}
        self._leaf_gradients = []
        self.frame = self.replaying = None


def _detached(tensor: Tensor) -> Tensor:
    return Tensor(tensor.tape, tensor.storage, tensor.shape, tensor.strides, tensor.dtype, parameter=tensor.parameter)


def _attached(slot: Slot) -> Tensor:
    """The checkpointed input, as a leaf that asks for a gradient."""
    kept = slot.tensor
    assert kept is not None
    again = _detached(kept)
    again.node = Node("checkpointed input", 0, kept.tape.home, (), [], lambda grads, saved: ())
    return again
