"""Encoders, and encoder-decoders: BERT and its line, DeBERTa, ModernBERT, T5, BART.

Read from the modelling code of transformers 5.24 (modeling_<model_type>.py of each family). An encoder is counted as
its base model with the pooler, where the class has one, as its published counts are; the masked-LM head (a transform
the size of the pooler, the tied decoder and its bias) serves the activations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.catalog.bounds import MOST_HEADS, MOST_LAYERS, MOST_POSITIONS, MOST_VOCAB
from service.catalog.hf_config.decoder import GATED, PLAIN, activation, decoder, layer_pattern, sliding_layers
from service.catalog.hf_config.gpt import ALL_BIASES, refuse_cross_attention
from service.catalog.hf_config.reader import ConfigReader
from service.catalog.hf_config.registry import reads
from service.engine.architecture import Activation, Architecture, Encoder, ExtraTensor


@reads("bert")
def bert(config: ConfigReader) -> Architecture:
    refuse_cross_attention(config)
    return decoder(config, **_post_norm(config), **_bert_rates(config), pooler=True)


@reads("roberta", "xlm-roberta")
def roberta(config: ConfigReader) -> Architecture:
    """The first rows of the position table, up to the padding token's, serve no position (modeling_roberta.py)."""
    refuse_cross_attention(config)
    padding = config.optional_size("pad_token_id", least=0, most=MOST_VOCAB)
    offset = (1 if padding is None else padding) + 1
    rows = config.size("max_position_embeddings", most=MOST_POSITIONS)
    if rows <= offset:
        offset = 0
    places: dict[str, Any] = {"max_positions": rows - offset, "position_offset": offset}
    return decoder(config, **_post_norm(config), **_bert_rates(config), **places, pooler=True)


@reads("distilbert")
def distilbert(config: ConfigReader) -> Architecture:
    rates: dict[str, Any] = {"dropout": config.rate("dropout"), "attention_dropout": config.rate("attention_dropout")}
    return decoder(config, **_post_norm(config), **rates)


@reads("deberta-v2")
def deberta(config: ConfigReader) -> Architecture:
    """Relative positions are a table of its own, projected by each layer unless keys are shared."""
    learned = config.flag("position_biased_input", default=True)
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads", most=MOST_HEADS)
    width = config.optional_size("embedding_size") or hidden
    said = {**_post_norm(config), "position": "learned" if learned else "relative"}
    if width != hidden:
        config.problem("embedding_size", "an embedding narrower than the layers is not supported", allowed=str(hidden))
    dim = config.optional_size("attention_head_size", most=MOST_HEADS)
    if dim and dim * heads != hidden:
        config.problem("attention_head_size", f"{heads} heads of {dim} are not hidden_size {hidden}", allowed="nothing")
    architecture = decoder(config, **said, **_bert_rates(config), heads=heads)
    return replace(architecture, extra_tensors=_disentangled(config, architecture))


def _disentangled(config: ConfigReader, architecture: Architecture) -> tuple[ExtraTensor, ...]:
    hidden, tensors = (architecture.hidden_size,), list[ExtraTensor]()
    if "layer_norm" in (config.word("norm_rel_ebd") or "none").lower():
        tensors += [
            ExtraTensor(name=f"encoder.rel_norm.{part}", module="norm", shape=hidden) for part in ("weight", "bias")
        ]
    tensors += _convolution(config, architecture.hidden_size)
    if config.flag("relative_attention"):
        shape = (_relative_rows(config, architecture), *hidden)
        tensors.append(ExtraTensor(name="encoder.rel_embeddings.weight", module="embedding", shape=shape))
        tensors += _position_projections(config, architecture)
    return tuple(tensors)


def _convolution(config: ConfigReader, hidden: int) -> list[ExtraTensor]:
    """The larger v2 models add the output of a convolution to the first layer's."""
    kernel = config.optional_size("conv_kernel_size", least=0, most=MOST_HEADS)
    if not kernel:
        return []
    groups = config.optional_size("conv_groups") or 1
    if hidden % groups:
        config.problem("conv_groups", f"conv_groups {groups} does not divide hidden_size {hidden}", given=groups)
    shapes = {"conv.weight": (hidden, hidden // groups, kernel), "conv.bias": (hidden,)}
    norms = {f"LayerNorm.{part}": (hidden,) for part in ("weight", "bias")}
    return [
        ExtraTensor(name=f"encoder.conv.{name}", module="norm" if name in norms else "mlp", shape=shape)
        for name, shape in (*shapes.items(), *norms.items())
    ]


def _relative_rows(config: ConfigReader, architecture: Architecture) -> int:
    """Two rows for each bucket, or for each distance where there are no buckets."""
    span, buckets = config.signed("max_relative_positions", -1), config.signed("position_buckets", -1)
    if buckets > 0:
        return 2 * buckets
    return 2 * (span if span >= 1 else architecture.max_positions)


def _position_projections(config: ConfigReader, architecture: Architecture) -> list[ExtraTensor]:
    if config.flag("share_att_key"):
        return []
    shape, everywhere = (architecture.query_width, architecture.hidden_size), tuple(range(architecture.layers))
    names = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}
    return [
        ExtraTensor(name=f"self_attn.{names[way]}.{part}", module="attention", shape=shape[:axes], layers=everywhere)
        for way in ("c2p", "p2c")
        if way in config.words("pos_att_type")
        for part, axes in (("weight", 2), ("bias", 1))
    ]


@reads("modernbert")
def modernbert(config: ConfigReader) -> Architecture:
    """No norm before the first attention; windows in all but every third layer (modeling_modernbert.py)."""
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    every = config.optional_size("global_attn_every_n_layers", most=MOST_LAYERS) or 3
    default = ["sliding_attention" if position % every else "full_attention" for position in range(layers)]
    bias = config.flag("attention_bias")
    return decoder(
        config,
        own_head_dim=False,
        kv_heads=config.size("num_attention_heads", most=MOST_HEADS),
        norm="layernorm" if config.flag("norm_bias") else "layernorm-no-bias",
        head="masked-lm",
        first_attention_norm=False,
        embedding_norm=True,
        fused_qkv=True,
        fused_gate_up=True,
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=config.flag("mlp_bias"),
        dropout=0.0,
        embedding_dropout=config.rate("embedding_dropout"),
        ffn_dropout=config.rate("mlp_dropout"),
        sliding_window=config.optional_size("local_attention"),
        sliding_layers=sliding_layers(layer_pattern(config, layers, default)),
    )


def _post_norm(config: ConfigReader) -> dict[str, Any]:
    return {
        "gated": False,
        "own_head_dim": False,
        "kv_heads": config.size("num_attention_heads", most=MOST_HEADS),
        "norm": "layernorm",
        "norm_placement": "post",
        "final_norm": False,
        "head": "masked-lm",
        "position": "learned",
        "embedding_norm": True,
        "token_types": config.optional_size("type_vocab_size", least=0, most=MOST_VOCAB) or 0,
        **ALL_BIASES,
    }


def _bert_rates(config: ConfigReader) -> dict[str, Any]:
    return {
        "dropout": config.rate("hidden_dropout_prob"),
        "attention_dropout": config.rate("attention_probs_dropout_prob"),
    }


@reads("t5", "mt5")
def t5(config: ConfigReader) -> Architecture:
    """The output is tied as the config says; transformers 5 itself ties it always (docs/catalogue.md)."""
    layers = config.size("num_hidden_layers", most=MOST_LAYERS)
    heads, dim, width = (
        config.size("num_attention_heads", most=MOST_HEADS),
        config.size("head_dim"),
        config.size("d_ff"),
    )
    rate = config.rate("dropout_rate")
    act, function = _t5_activation(config)
    return decoder(
        config,
        layers=config.optional_size("num_decoder_layers", most=MOST_LAYERS) or layers,
        heads=heads,
        kv_heads=heads,
        head_dim=dim,
        ffn_size=width,
        max_positions=config.optional_size("n_positions", most=MOST_POSITIONS) or 512,
        position="relative",
        relative_buckets=config.size("relative_attention_num_buckets", most=MOST_POSITIONS),
        activation=act,
        activation_function=function,
        dropout=rate,
        attention_dropout=rate,
        ffn_dropout=rate,
        encoder=Encoder(layers=layers, heads=heads, head_dim=dim, ffn_size=width),
    )


def _t5_activation(config: ConfigReader) -> tuple[Activation, str]:
    """feed_forward_proj is "relu" or "gated-gelu": an activation, gated or not."""
    said = config.word("feed_forward_proj") or "relu"
    gate, _, name = said.rpartition("-")
    known = GATED if gate == "gated" else PLAIN
    if gate not in ("", "gated") or name not in known:
        config.problem(
            "feed_forward_proj", "feed_forward_proj is not known", allowed="relu, gelu, gated-gelu, gated-silu"
        )
        return "relu", said
    return known[name], "gelu_new" if said == "gated-gelu" else name


@reads("bart")
def bart(config: ConfigReader) -> Architecture:
    hidden = config.size("hidden_size")
    heads = config.size("decoder_attention_heads", most=MOST_HEADS)
    encoder_heads = config.size("encoder_attention_heads", most=MOST_HEADS)
    if hidden % heads or hidden % encoder_heads:
        config.problem("d_model", f"d_model {hidden} is not a multiple of the attention heads", given=hidden)
    act, function = activation(config, gated=False, key="hidden_act")
    return decoder(
        config,
        layers=config.size("decoder_layers", most=MOST_LAYERS),
        heads=heads,
        kv_heads=heads,
        own_head_dim=False,
        ffn_size=config.size("decoder_ffn_dim"),
        activation=act,
        activation_function=function,
        norm="layernorm",
        norm_placement="post",
        final_norm=False,
        position="learned",
        position_offset=2,
        embedding_norm=True,
        dropout=config.rate("dropout"),
        ffn_dropout=config.rate("activation_dropout"),
        encoder=Encoder(
            layers=config.size("encoder_layers", most=MOST_LAYERS),
            heads=encoder_heads,
            head_dim=max(hidden // encoder_heads, 1),
            ffn_size=config.size("encoder_ffn_dim"),
        ),
        **ALL_BIASES,
    )
