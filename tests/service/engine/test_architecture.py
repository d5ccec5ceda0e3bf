"""Which layers of a model are alike."""

from __future__ import annotations

from dataclasses import replace

from service.engine.architecture import Architecture, ExtraTensor, MixtureOfExperts, layer_kinds, routed_layers

DENSE = Architecture(
    layers=6,
    hidden_size=64,
    heads=4,
    kv_heads=2,
    head_dim=16,
    ffn_size=128,
    vocab_size=100,
    max_positions=128,
)


def positions(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    return {kind.name: kind.positions for kind in layer_kinds(architecture)}


def test_layers_that_are_alike_are_one_kind() -> None:
    (kind,) = layer_kinds(DENSE)
    assert kind.positions == (0, 1, 2, 3, 4, 5)
    assert (kind.ffn_size, kind.kv_heads, kind.head_dim, kind.rotary) == (128, 2, 16, True)


def test_deepseek_routes_every_layer_after_the_first_dense_ones() -> None:
    moe = MixtureOfExperts(experts=8, top_k=2, ffn_size=32, first_dense_layers=2)
    assert positions(replace(DENSE, moe=moe)) == {"dense": (0, 1), "moe": (2, 3, 4, 5)}


def test_llama4_maverick_routes_every_second_layer_the_second_first() -> None:
    moe = MixtureOfExperts(experts=8, top_k=1, ffn_size=32, every=2)
    assert routed_layers(replace(DENSE, moe=moe)) == (1, 3, 5)


def test_routed_layers_that_are_named_win_over_a_rule() -> None:
    moe = MixtureOfExperts(experts=8, top_k=1, ffn_size=32, places=(0, 4))
    assert positions(replace(DENSE, moe=moe)) == {"moe": (0, 4), "dense": (1, 2, 3, 5)}


def test_windows_and_layers_without_positions_are_kinds_of_their_own() -> None:
    mixed = replace(DENSE, sliding_window=16, sliding_layers=(0, 1, 2, 4), nope_layers=(2, 3, 5))
    kinds = layer_kinds(mixed)
    assert [(kind.attention, kind.rotary, kind.positions) for kind in kinds] == [
        ("sliding", True, (0, 1, 4)),
        ("sliding", False, (2,)),
        ("full", False, (3, 5)),
    ]


def test_every_position_belongs_to_exactly_one_kind() -> None:
    moe = MixtureOfExperts(experts=4, top_k=1, ffn_size=32, every=3)
    extra = ExtraTensor(name="indexer.weight", module="attention", shape=(4, 4), layers=(1, 4))
    mixed = replace(DENSE, moe=moe, sliding_layers=(0, 2), sliding_window=8, extra_tensors=(extra,))
    seen = sorted(position for kind in layer_kinds(mixed) for position in kind.positions)
    assert seen == list(range(6))


def test_full_attention_layers_may_have_their_own_heads() -> None:
    gemma4 = replace(DENSE, sliding_layers=(0, 1, 2, 3, 4), sliding_window=8, full_head_dim=32, full_kv_heads=1)
    sliding, full = layer_kinds(gemma4)
    assert (sliding.kv_heads, sliding.head_dim) == (2, 16)
    assert (full.kv_heads, full.head_dim) == (1, 32)
