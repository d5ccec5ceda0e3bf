"""What lives only for part of a step: gathered parameters, weight copies, logits, buckets, temporaries, workspaces.

Each function yields bundles of `working` rows with the moments at which they are alive and the source of the habit.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.engine.ledger import Bundle
from service.engine.stage import Prepared, StageView
from service.engine.transients import (
    casts,
    deepspeed,
    layer,
    loss,
    megatron,
    optimizer,
    rounding,
    sharding,
    torchtitan,
    workspaces,
)

SOURCES = (
    sharding.gathered,
    sharding.kept_gathered,
    sharding.frozen_hooks,
    optimizer.optimizer_temporaries,
    rounding.block_rounding,
    workspaces.workspaces,
)
#: what the program of traced modelling code tells by itself
UNTRACED = (casts.weight_casts, layer.layer_gradients)
#: the logits, where a stack's code differs
LOSS_OF_STACK = {"torchtitan": torchtitan.logits}
#: what one stack's code does besides
OF_STACK = {
    "deepspeed": (deepspeed.buckets, deepspeed.step_gradients, deepspeed.pipeline_outputs),
    "torchtitan": (torchtitan.accumulated_gradients, torchtitan.pipeline_buffers),
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
    name = prepared.stack.name
    untraced = () if prepared.traced else (*UNTRACED, LOSS_OF_STACK.get(name, loss.logits))
    for source in (*SOURCES, *untraced, *OF_STACK.get(name, ())):
        yield from source(prepared, stage)
