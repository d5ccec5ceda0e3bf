"""Choosing rows and entries by index: tables, routers, experts."""

from __future__ import annotations

from collections.abc import Sequence

from service.engine.autograd.ops.layout import like
from service.engine.autograd.storage import Extent, Shape, Tensor


def picked(x: Tensor, axis: int, index: Tensor, label: str) -> Tensor:
    """x[..., [i], :]: one entry of a dimension as a copy of extent 1; keeps the index."""
    tape = x.tape
    slots = [tape.save(index, "index")] if x.needs_grad else []
    out = tape.new((*x.shape[:axis], (), *x.shape[axis + 1 :]), x.dtype, label)
    if x.needs_grad:
        whole = x.shape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            zeros = tape.new(whole, grads[0].dtype, "zeros to add into")  # type: ignore[union-attr]
            result = like(zeros, "gradient of a picked entry")
            del zeros
            return [result]

        out.node = tape.node("index", (x,), slots, backward)
    return out


def top_k(x: Tensor, extent: Extent, label: str) -> tuple[Tensor, Tensor]:
    """The largest entries of each row and where they were."""
    tape = x.tape
    shape = (*x.shape[:-1], extent)
    values = tape.new(shape, x.dtype, label)
    places = tape.new(shape, "int64", f"places of {label}")
    if x.needs_grad:
        whole = x.shape
        slots = [tape.save(places, "topk")]
        values.node = tape.node(
            "topk", (x,), slots, lambda grads, saved: [tape.new(whole, grads[0].dtype, "gradient of chosen entries")]  # type: ignore[union-attr]
        )  # fmt: skip
    return values, places


def gather(x: Tensor, places: Tensor, label: str) -> Tensor:
    """Entries of each row by place."""
    tape = x.tape
    slots = [tape.save(places, "gather")] if x.needs_grad else []
    out = tape.new(places.shape, x.dtype, label)
    if x.needs_grad:
        whole = x.shape
        out.node = tape.node(
            "gather", (x,), slots, lambda grads, saved: [tape.new(whole, grads[0].dtype, "gradient of the gathered")]  # type: ignore[union-attr]
        )  # fmt: skip
    return out


def rows_at(x: Tensor, indices: Tensor, label: str) -> Tensor:
    """x[indices] over the first dimension; backward adds into a tensor of zeros, out of place."""
    tape = x.tape
    slots = [tape.save(indices, "index")] if x.needs_grad else []
    out = tape.new((indices.shape[0], *x.shape[1:]), x.dtype, label)
    if x.needs_grad:
        whole = x.shape

        def backward(grads: list[Tensor | None], saved: list[Tensor]) -> list[Tensor | None]:
            zeros = tape.new(whole, grads[0].dtype, "zeros to add into")  # type: ignore[union-attr]
            result = like(zeros, "gradient of chosen rows")
            del zeros
            return [result]

        out.node = tape.node("index", (x,), slots, backward)
    return out


def written_into(parts: Sequence[Tensor], shape: Shape, label: str) -> Tensor:
    """A new tensor that parts are copied into one after the other (CopySlices keeps whole copies in backward)."""
    tape = parts[0].tape
    out = tape.new(shape, parts[0].dtype, label)
    whole = out
    for part in parts:
        before, out = out, Tensor(tape, whole.storage, shape, whole.strides, whole.dtype)
        part_shape = part.shape

        def backward(
            grads: list[Tensor | None], saved: list[Tensor], part_shape: Shape = part_shape
        ) -> list[Tensor | None]:
            rest = tape.new(shape, grads[0].dtype, "gradient of what was there before")  # type: ignore[union-attr]
            return [rest, tape.new(part_shape, rest.dtype, "gradient of a part")]

        out.node = tape.node("copy_slices", (before, part), [], backward)
    return out


def embedding(table: Tensor, shape: Shape, label: str, *, indices: Tensor | None = None) -> Tensor:
    """Rows of a table; backward makes a dense gradient as large as the table."""
    tape = table.tape
    slots = [tape.save(indices, "embedding")] if indices is not None and table.needs_grad else []
    out = tape.new((*shape, table.shape[-1]), table.dtype, label)
    if table.needs_grad:
        rows, dtype = table.shape, table.dtype
        out.node = tape.node(
            "embedding", (table,), slots, lambda grads, saved: [tape.new(rows, dtype, "gradient of an embedding table")]
        )
    return out
