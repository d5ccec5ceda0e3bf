"""Laws that hold whatever the shape: more tokens never cost less, recomputation never saves more, sums add up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.architecture import Architecture, MixtureOfExperts
from service.engine.hardware import Gpu
from service.engine.layout import Layout
from service.engine.ledger import INSTANTS
from service.engine.run import Recompute, Run
from service.engine.size import StageSizing, size
from service.engine.stacks import STACKS, RecipeRequest, recipe

CARD = Gpu(id="any", name="any", vendor="NVIDIA", memory_bytes=1 << 45)
STACK_NAMES = ("reference", "huggingface", "torchtitan", "megatron", "deepspeed")

shapes = st.builds(
    lambda layers, kv, group, head, ffn, vocab, dropout, moe: Architecture(
        layers=layers,
        hidden_size=kv * group * head,
        heads=kv * group,
        kv_heads=kv,
        head_dim=head,
        ffn_size=None if moe else ffn,
        vocab_size=vocab,
        max_positions=8192,
        dropout=dropout,
        moe=MixtureOfExperts(experts=8, top_k=2, ffn_size=ffn) if moe else None,
    ),
    layers=st.integers(1, 4),
    kv=st.sampled_from((1, 2, 4)),
    group=st.sampled_from((1, 2, 4)),
    head=st.sampled_from((32, 64)),
    ffn=st.sampled_from((256, 704)),
    vocab=st.sampled_from((512, 3000)),
    dropout=st.sampled_from((0.0, 0.1)),
    moe=st.booleans(),
)
sequences = st.sampled_from((64, 96, 128, 512, 1000))
attentions = st.sampled_from(("flash", "sdpa", "eager"))
precisions = st.sampled_from(("bf16", "fp32", "amp", "bf16-mixed"))
batches = st.integers(1, 4)


def sized(  # type: ignore[no-untyped-def]
    name: str, shape: Architecture, *, sequence: int, batch: int, attention="flash", precision="bf16", recompute="none"
) -> StageSizing:
    stack = STACKS[name]
    run = Run(
        sequence_length=sequence,
        micro_batch=batch,
        attention=attention,
        recompute=Recompute(kind=recompute),
        loss=stack.loss,
        kernels=stack.kernels,
        optimizer_impl=stack.optimizer_impl,
    )
    made = recipe(stack, RecipeRequest(precision=precision), sharded=False)
    return size(shape, made, Layout(), run, stack, CARD).stages[0]


@pytest.mark.parametrize("name", STACK_NAMES)
@settings(max_examples=15)
@given(shape=shapes, sequence=sequences, batch=batches, attention=attentions, precision=precisions)
def test_more_sequence_never_needs_less(name, shape, sequence, batch, attention, precision) -> None:  # type: ignore[no-untyped-def]
    chosen = {"attention": attention, "precision": precision, "batch": batch}
    short, long = sized(name, shape, sequence=sequence, **chosen), sized(name, shape, sequence=2 * sequence, **chosen)
    assert long.saved_bytes > short.saved_bytes
    assert long.allocated_bytes >= short.allocated_bytes


@pytest.mark.parametrize("name", STACK_NAMES)
@settings(max_examples=15)
@given(shape=shapes, sequence=sequences, batch=batches, attention=attentions)
def test_more_sequences_in_a_batch_never_need_less(name, shape, sequence, batch, attention) -> None:  # type: ignore[no-untyped-def]
    few = sized(name, shape, sequence=sequence, batch=batch, attention=attention)
    many = sized(name, shape, sequence=sequence, batch=batch + 1, attention=attention)
    assert many.saved_bytes > few.saved_bytes
    assert many.allocated_bytes >= few.allocated_bytes


@pytest.mark.parametrize("name", STACK_NAMES)
@settings(max_examples=15)
@given(shape=shapes, sequence=sequences, batch=batches, attention=attentions, precision=precisions)
def test_recomputation_never_saves_more(name, shape, sequence, batch, attention, precision) -> None:  # type: ignore[no-untyped-def]
    chosen = {"sequence": sequence, "batch": batch, "attention": attention, "precision": precision}
    plain, again = sized(name, shape, **chosen), sized(name, shape, recompute="full", **chosen)
    assert again.saved_bytes <= plain.saved_bytes


@pytest.mark.parametrize("name", STACK_NAMES)
@settings(max_examples=10)
@given(shape=shapes, sequence=sequences, batch=batches, attention=attentions, precision=precisions)
def test_rows_add_up_to_terms_in_integers(name, shape, sequence, batch, attention, precision) -> None:  # type: ignore[no-untyped-def]
    stage = sized(name, shape, sequence=sequence, batch=batch, attention=attention, precision=precision)
    for instant in range(len(INSTANTS)):
        sums: dict[str, int] = {}
        for bundle in stage.bundles:
            for row in bundle.rows:
                assert isinstance(row.bytes, int)
                sums[bundle.term] = sums.get(bundle.term, 0) + row.bytes * int(bundle.alive[instant])
        told = {term: int(value) for term, value in stage.line.at(instant).items() if value}
        assert {term: size for term, size in sums.items() if size} == told
