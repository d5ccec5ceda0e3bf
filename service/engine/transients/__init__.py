"""What lives only for part of a step: gathered parameters, weight copies, logits, buckets, temporaries, workspaces.

Each function yields bundles of `working` rows with the moments at which they are alive and the source of the habit.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Bundle
from service.engine.stage import Prepared, StageView
from service.engine.transients import casts, layer, loss, megatron, optimizer, sharding, workspaces

SOURCES = (
    sharding.gathered,
    sharding.kept_gathered,
    sharding.buckets,
    optimizer.optimizer_temporaries,
    workspaces.workspaces,
)
#: what the program of traced modelling code tells by itself
UNTRACED = (casts.weight_casts, loss.logits, layer.layer_gradients)
#: what only one stack's code does
OF_STACK = {
    "megatron": (
        megatron.weight_gradient_dummies,
        megatron.output_layer_backward,
        megatron.last_hidden_states,
        megatron.mlp_backward,
        megatron.scores_backward,
        megatron.pipeline_buffers,
        megatron.scores_buffer,
        megatron.gradient_copies,
    ),
}


def bundles(prepared: Prepared, stage: StageView) -> Iterator[Bundle]:
    """Every transient of one stage."""
    untraced = () if prepared.traced else UNTRACED
    for source in (*SOURCES, *untraced, *OF_STACK.get(prepared.stack.name, ())):
        yield from source(prepared, stage)
