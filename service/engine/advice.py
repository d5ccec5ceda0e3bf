"""Layouts that run but are unwise, and why."""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.architecture import Architecture
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.run import Run


def unwise(architecture: Architecture, layout: Layout, run: Run, gpu: Gpu) -> Iterator[tuple[str, str]]:
    """(code, message) of every habit that costs speed or memory without need, for one layout of plain degrees."""
    tp, pp, ep = int(layout.tp), int(layout.pp), int(layout.ep)
    if tp > gpu.scale_up_domain:
        yield (
            "tensor_parallel_across_nodes",
            f"tp={tp} reaches beyond the {gpu.scale_up_domain} GPUs that share a fast link: every layer waits for the "
            "network four times",
        )
    micro_batches = int(run.micro_batches)
    if pp > 1 and micro_batches < pp:
        yield (
            "pipeline_not_filled",
            f"{micro_batches} micro-batches a step do not fill a pipeline of {pp} stages: raise global_batch to "
            f"{pp * int(layout.dp) * int(run.micro_batch)} or more, or lower pp",
        )
    elif layout.vpp > 1 and micro_batches % pp:
        yield (
            "interleaving_without_micro_batches",
            f"vpp={layout.vpp} takes micro-batches in rounds of pp={pp}, and {micro_batches} are not whole rounds: the "
            "pipeline's bubble stays",
        )
    if ep > 1 and ep > int(layout.data_ranks):
        yield (
            "expert_parallel_above_data_parallel",
            f"ep={ep} is above dp·cp = {int(layout.data_ranks)}: experts are spread over tensor-parallel ranks, whose "
            "tokens are the same until they are split",
        )
    moe = architecture.moe
    if moe is not None and ep > 1 and ep > gpu.scale_up_domain and run.moe_dispatcher == "all-to-all":
        yield (
            "expert_parallel_across_nodes",
            f"ep={ep} sends every token over the network with moe_dispatcher=all-to-all; deepep and hybridep are made "
            "for that",
        )
