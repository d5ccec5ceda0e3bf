"""The graph that forward leaves behind, and the engine that runs it backward.

Order and lifetimes follow torch/csrc/autograd/engine.cpp: nodes run from the youngest to the oldest, inputs and saved
tensors of a node live until its results were checked, gradients that meet are added out of place.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from service.engine.autograd.storage import Shape, Tensor

if TYPE_CHECKING:
    from service.engine.autograd.tape import Tape

Gradients = Sequence[Tensor | None]
Backward = Callable[[list[Tensor | None], list[Tensor]], Gradients]


class StopRecomputation(Exception):
    """Everything that backward asked for was computed again."""


class Frame:
    """One checkpointed call (torch/utils/checkpoint.py, non-reentrant): counts what forward would have saved, and
    runs it again up to the last of them when backward asks for the first."""

    __slots__ = ("again", "count", "kept")

    def __init__(self, again: Callable[[], object]) -> None:
        self.again = again
        self.count = 0
        self.kept: list[Tensor | None] | None = None

    def promise(self) -> int:
        self.count += 1
        return self.count - 1

    def take(self, tape: Tape, index: int) -> Tensor:
        if self.kept is None:
            self.kept = []
            tape.recompute(self)
        tensor = self.kept[index]
        assert tensor is not None
        self.kept[index] = None
        return tensor

    def keep(self, tensor: Tensor) -> None:
        assert self.kept is not None
        self.kept.append(tensor)
        if len(self.kept) == self.count:
            raise StopRecomputation


class Slot:
    """A tensor that a node saved, or a checkpointed call's promise of it."""

    __slots__ = ("frame", "index", "tensor")

    def __init__(self, tensor: Tensor | None, frame: Frame | None = None, index: int = 0) -> None:
        self.tensor = tensor
        self.frame = frame
        self.index = index

    def unpack(self, tape: Tape) -> Tensor:
        if self.frame is not None:
            return self.frame.take(tape, self.index)
        assert self.tensor is not None
        return self.tensor


class Node:
    """One operation of forward that a gradient flows through."""

    __slots__ = ("backward", "edges", "home", "metas", "name", "order", "ports", "slots")

    def __init__(
        self, name: str, order: int, home: int, inputs: Sequence[Tensor], slots: list[Slot], backward: Backward
    ) -> None:
        self.name = name
        self.order = order
        self.home = home
        self.edges: list[tuple[Node, int] | None] = [
            (tensor.node, tensor.port) if tensor.node is not None else None for tensor in inputs
        ]
        self.metas: list[tuple[Shape, str]] = [(tensor.shape, tensor.dtype) for tensor in inputs]
        self.slots = slots
        self.backward: Backward | None = backward
        self.ports = 1


class Accumulate(Node):
    """Where the gradient of a parameter arrives, or of another leaf, which the node holds (`variable`)."""

    __slots__ = ("parameter", "variable")

    def __init__(self, parameter: str, home: int, *, variable: Tensor | None = None) -> None:
        super().__init__(f"gradient of {parameter}", 1 << 60, home, (), [], lambda grads, saved: ())
        self.parameter = parameter
        self.variable = variable


def run_backward(tape: Tape, node: Node, gradient: Tensor) -> None:
    """Backward from one node to every parameter; frees the graph on the way."""
    waiting = _dependencies(node)
    arrived: dict[Node, list[Tensor | None]] = {node: [gradient]}
    del gradient
    ready = [(-node.order, id(node), node)]
    del node
    while ready:
        _, _, node = heapq.heappop(ready)
        tape.home = node.home
        grads = arrived.pop(node)
        if isinstance(node, Accumulate):
            tape.collect(node, grads)
            continue
        edges = node.edges
        for index, result in _apply(tape, node, grads):
            edge = edges[index]
            assert edge is not None
            _arrive(tape, arrived, edge, result)
            del result
        for edge in edges:
            if edge is not None:
                waiting[edge[0]] -= 1
                if waiting[edge[0]] == 0 and edge[0] in arrived:
                    heapq.heappush(ready, (-edge[0].order, id(edge[0]), edge[0]))
        node.edges = []


def _dependencies(root: Node) -> dict[Node, int]:
    counts: dict[Node, int] = {}
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        for edge in node.edges:
            if edge is not None:
                counts[edge[0]] = counts.get(edge[0], 0) + 1
                if edge[0] not in seen:
                    seen.add(edge[0])
                    stack.append(edge[0])
    return counts


def _apply(tape: Tape, node: Node, grads: list[Tensor | None]) -> list[tuple[int, Tensor]]:
    """Results of one node, brought to the shape and dtype of its inputs; its saved tensors are let go."""
    saved = [slot.unpack(tape) for slot in node.slots]
    assert node.backward is not None
    results = list(node.backward(grads, saved))
    # what a checkpoint computed again is held by nobody else; what forward saved is held by the node until the end
    saved.clear()
    checked: list[tuple[int, Tensor]] = []
    for index, meta in enumerate(node.metas):
        result = results[index] if index < len(results) else None
        if index < len(results):
            results[index] = None
        if result is None or node.edges[index] is None:
            continue
        checked.append((index, tape.fit(result, meta)))
        del result
    grads.clear()
    node.slots = []
    node.backward = None
    return checked


def _arrive(tape: Tape, arrived: dict[Node, list[Tensor | None]], edge: tuple[Node, int], result: Tensor) -> None:
    node, port = edge
    buffer = arrived.setdefault(node, [None] * node.ports)
    old = buffer[port]
    buffer[port] = result if old is None else tape.add_gradients(old, result)
