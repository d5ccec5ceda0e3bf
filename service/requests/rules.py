"""Combinations of keys that cannot be, as far as the request alone tells; what needs the model is the engine's."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from service.engine.errors import FieldError
from service.requests.keys import MOST_GPUS, MOST_TOKENS_IN_MICRO_BATCH
from service.requests.request import SizingRequest
from service.requests.vocabulary import AUTO

#: Degrees whose product is the number of GPUs.
DEGREES = ("tp", "pp", "cp", "dp")


def combination_errors(request: SizingRequest) -> Iterator[FieldError]:
    """Every combination of the request's keys that contradicts itself."""
    yield from _degree_errors(request)
    yield from _batch_errors(request)
    yield from _expert_errors(request)
    yield from _stage_errors(request)
    yield from _solve_errors(request)
    yield from _adapter_errors(request)


def gives_layout(request: SizingRequest) -> bool:
    """Whether a parallel degree is given as a number, so that a layout is given rather than asked for."""
    return any(isinstance(getattr(request, name), int) for name in (*DEGREES, "ep"))


def known_degrees(request: SizingRequest) -> dict[str, int] | None:
    """All of tp, pp, cp, dp of a given layout, or None while one is left to the recommender or cannot be derived."""
    if not gives_layout(request):
        return None
    degrees = {name: getattr(request, name) for name in DEGREES}
    if AUTO in degrees.values():
        return None
    others = prod(degrees[name] or 1 for name in ("tp", "pp", "cp"))
    if degrees["dp"] is None:
        if request.gpus is not None and request.gpus % others:
            return None
        degrees["dp"] = request.gpus // others if request.gpus else 1
    return {name: degree or 1 for name, degree in degrees.items()}


def _degree_errors(request: SizingRequest) -> Iterator[FieldError]:
    given = {name: value for name in DEGREES if isinstance(value := getattr(request, name), int)}
    product, gpus = prod(given.values()), request.gpus
    written = "·".join(given)
    if product > MOST_GPUS:
        largest = max(given, key=lambda name: given[name])
        allowed = f"a product of at most {MOST_GPUS:,} GPUs"
        yield FieldError(f"/{largest}", f"{written} is out of range", f"{product:,}", allowed)
    elif gpus is not None and given:
        complete = "dp" in given and AUTO not in (request.tp, request.pp, request.cp)
        if complete and product != gpus:
            others = product // given["dp"]
            suggestions = (*((f"dp={gpus // others}",) if gpus % others == 0 else ()), f"gpus={product}")
            detail = f"{written} is {product:,}, but gpus is {gpus:,}"
            yield FieldError("/gpus", detail, str(gpus), f"{written} = gpus", suggestions)
        elif gpus % product:
            first = next(iter(given))
            detail = f"{written} = {product:,} does not divide gpus = {gpus:,}"
            suggestions = (
                _dividing(first, product, gpus) if len(given) == 1 else (f"gpus={-(-gpus // product) * product}",)
            )
            yield FieldError(f"/{first}", detail, str(product), f"a product that divides {gpus:,}", suggestions)


def _dividing(name: str, degree: int, gpus: int) -> tuple[str, ...]:
    """The next smaller and the next larger degree that divide the GPUs."""
    below = next(lower for lower in range(min(degree, gpus), 0, -1) if gpus % lower == 0)
    above = next((upper for upper in range(degree, min(4 * degree, gpus) + 1) if gpus % upper == 0), None)
    return tuple(f"{name}={value}" for value in (below, above) if value is not None)


def _batch_errors(request: SizingRequest) -> Iterator[FieldError]:
    micro_batch = request.micro_batch if isinstance(request.micro_batch, int) else None
    if micro_batch and request.sequence_length and micro_batch * request.sequence_length > MOST_TOKENS_IN_MICRO_BATCH:
        yield FieldError("/micro_batch", "micro_batch · sequence_length is out of range",
                         f"{micro_batch:,} · {request.sequence_length:,} tokens",
                         f"at most {MOST_TOKENS_IN_MICRO_BATCH:,} tokens in a micro-batch")  # fmt: skip
    if request.global_batch is None:
        return
    degrees = known_degrees(request)
    if request.micro_batch is None and request.solve != "micro_batch":
        micro_batch = 1
    if micro_batch is None and degrees is None:
        return
    replicas = degrees["dp"] if degrees else 1
    step = replicas * (micro_batch or 1)
    if request.global_batch % step:
        rounded = max(round(request.global_batch / step), 1) * step
        what = f"dp · micro_batch = {replicas} · {micro_batch or 1}" if degrees else f"micro_batch = {step}"
        yield FieldError("/global_batch", f"global_batch = {request.global_batch:,} cannot be divided by {what}",
                         str(request.global_batch), f"a multiple of {step:,}",
                         (f"global_batch={rounded}",))  # fmt: skip


def _expert_errors(request: SizingRequest) -> Iterator[FieldError]:
    degrees = known_degrees(request)
    if degrees is None or not isinstance(request.ep, int):
        return
    ranks = degrees["tp"] * degrees["cp"] * degrees["dp"]
    split = request.ep * (request.etp or 1)
    if ranks % split:
        what = f"ep·etp = {split:,}" if request.etp else f"ep = {split:,}"
        yield FieldError("/ep", f"{what} does not divide tp·cp·dp = {ranks:,}", str(request.ep),
                         f"ep·etp divides {ranks:,}")  # fmt: skip


def _stage_errors(request: SizingRequest) -> Iterator[FieldError]:
    degrees = known_degrees(request)
    if request.stage_layers is not None and (degrees is not None or request.pp is None):
        chunks = (degrees["pp"] if degrees else 1) * (request.vpp or 1)
        if len(request.stage_layers) != chunks:
            yield FieldError("/stage_layers", f"stage_layers has {len(request.stage_layers)} numbers, pp·vpp is "
                             f"{chunks}", str(len(request.stage_layers)), f"{chunks} numbers, one for each chunk",
                             (f"pp={len(request.stage_layers)}",) if not request.vpp else ())  # fmt: skip
    pp = degrees["pp"] if degrees else request.pp
    if request.stage and isinstance(pp, int) and request.stage >= pp:
        yield FieldError("/stage", f"stage {request.stage} does not exist with pp = {pp}", str(request.stage),
                         f"0 to {pp - 1}")  # fmt: skip
    if request.vpp is not None and request.vpp > 1 and pp == 1:
        yield FieldError("/vpp", "virtual pipeline chunks need a pipeline", str(request.vpp), "1 while pp is 1",
                         ("pp=2",))  # fmt: skip


def _solve_errors(request: SizingRequest) -> Iterator[FieldError]:
    if request.solve is None:
        return
    if request.gpus is None:
        yield FieldError("/gpus", f"solve={request.solve} needs gpus: the largest that fits on how many?", None,
                         "a number of GPUs", ("gpus=8",))  # fmt: skip
    if isinstance(getattr(request, request.solve), int):
        yield FieldError(f"/{request.solve}", f"{request.solve} is both given and solved for",
                         str(getattr(request, request.solve)), f"{request.solve} or solve, not both")  # fmt: skip


def _adapter_errors(request: SizingRequest) -> Iterator[FieldError]:
    if request.method in ("lora", "qlora"):
        return
    for name in ("lora_rank", "lora_targets"):
        if getattr(request, name) is not None:
            yield FieldError(f"/{name}", f"{name} needs adapters, but method is {request.method or 'full'}",
                             str(getattr(request, name)), "method lora or qlora", ("method=lora",))  # fmt: skip
