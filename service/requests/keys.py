"""The rows of the vocabulary: every key of a sizing request, in the order in which people are told about them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from service.engine.errors import nearest
from service.requests.vocabulary import KNOWN_ELSEWHERE, MOST_LAYERS, Key, as_name

#: Bounds that no real run reaches. With them every product of degrees, and tokens × width × layers × bytes of a model
#: below 10^13 parameters, stays inside 64-bit integers.
MOST_GPUS = 2**20
MOST_DEGREE = 4096
MOST_SEQUENCE_LENGTH = 2**24
MOST_TOKENS_IN_MICRO_BATCH = 2**28
MOST_CHARACTERS = 32_768
#: More errors than this help nobody, and finding near spellings is not free.
MOST_ERRORS = 20

_FLOATS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_LENGTH_WORDS = ("seq", "s", "ctx")
_BATCH_WORDS = ("mb", "mbs", "bs")

_RUN = (
    Key("model", "model", "the model: a catalogue or Hugging Face name, or a size (the answer says what it took)",
        "required", "llama-3-70b"),
    Key("sequence_length", "integer", "tokens in one sequence", "the model's longest, at most 8192", "seq=8k",
        words=_LENGTH_WORDS, minimum=1, maximum=MOST_SEQUENCE_LENGTH, suffixes="binary"),
    Key("micro_batch", "integer", "sequences that one data-parallel rank runs forward and backward at once", "1",
        "mb=2", words=_BATCH_WORDS, minimum=1, maximum=65_536, auto=True),
    Key("global_batch", "integer", "sequences in one optimizer step over all ranks; gives gradient accumulation",
        "no accumulation; with pp > 1 enough to fill the pipeline", "gbs=512",
        words=("gb", "gbs"), minimum=1, maximum=2**24, suffixes="binary"),
    Key("gpu", "gpu", "the GPU, or several to compare; any: NVIDIA and AMD data-centre GPUs", "H100 SXM 80 GB",
        "gpu=a100-80g"),
    Key("gpus", "integer", "how many GPUs are on hand: does the run fit on these?", "a count is recommended",
        "64xH100", words=("n",), minimum=1, maximum=MOST_GPUS, suffixes="binary"),
)  # fmt: skip

_TRAINING = (
    Key("method", "choice", "train every parameter, or adapters on a frozen base", "full", "lora=16",
        choices=("full", "lora", "qlora")),
    Key("lora_rank", "integer", "rank of the adapters", "16", "rank=32", words=("rank",), minimum=1, maximum=65_536),
    Key("lora_targets", "words", "matrices that get adapters, whatever the model calls them", "all-linear",
        "targets=q_proj,v_proj", words=("targets",), whole=("attention", "all-linear"), fewest=1, most=8,
        choices=("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head")),
    Key("precision", "choice", "number formats; amp: fp32 weights under autocast, fp8: bf16-mixed with fp8 products",
        "bf16-mixed; fp16-mixed on a GPU without bf16", "prec=bf16-mixed", words=("prec", "dtype"),
        choices=("bf16-mixed", "fp16-mixed", "bf16", "fp16", "fp32", "amp", "fp8"), spellings=_FLOATS),
    Key("optimizer", "choice", "muon takes the matrices and leaves the rest to AdamW; paged: moments on the host",
        "adamw", "opt=adamw-8bit", words=("opt",), spellings={"adamw8bit": "adamw-8bit", "adamw4bit": "adamw-4bit"},
        choices=("adamw", "adamw-8bit", "adamw-4bit", "paged-adamw", "paged-adamw-8bit",
                 "adafactor", "sgd", "sgd-momentum", "lion", "muon")),
    Key("gradient_dtype", "choice", "dtype in which gradients are kept between micro-batches", "the stack's",
        "grads=fp32", words=("grads",), choices=("bf16", "fp32", "fp16"), spellings=_FLOATS),
    Key("stack", "choice", "whose training code runs; reference is the textbook", "reference", "stack=megatron",
        choices=("reference", "huggingface", "torchtitan", "megatron", "deepspeed"),
        spellings={"hf": "huggingface", "transformers": "huggingface", "mcore": "megatron"}),
    Key("attention", "choice", "how attention is computed", "flash", "attn=eager", words=("attn",),
        choices=("flash", "sdpa", "eager")),
    Key("loss", "choice", "how logits meet the loss; fused: linear and cross-entropy in one kernel", "the stack's",
        "loss=fused", choices=("full", "chunked", "fused", "vocab-parallel")),
    Key("recompute", "choice", "activation checkpointing: what backward computes again (ckpt=full:20 does 20 layers)",
        "auto when recommending, none when a layout is given", "ckpt=full", words=("ckpt", "ac"),
        choices=("none", "selective", "full"), maximum=MOST_LAYERS, auto=True),
    Key("compile", "boolean", "torch.compile", "false", "compile"),
)  # fmt: skip

_LAYOUT = (
    Key("tp", "integer", "tensor-parallel degree", "1 in a given layout", "tp=8",
        minimum=1, maximum=MOST_DEGREE, auto=True),
    Key("sp", "boolean", "sequence parallelism: tp also divides norms and residuals", "the stack's when tp > 1", "sp"),
    Key("pp", "integer", "pipeline-parallel degree", "1 in a given layout", "pp=4",
        minimum=1, maximum=MOST_DEGREE, auto=True),
    Key("vpp", "integer", "virtual pipeline chunks on each pipeline rank (interleaved schedule)", "1", "vpp=2",
        minimum=1, maximum=MOST_LAYERS),
    Key("cp", "integer", "context-parallel degree", "1 in a given layout", "cp=2",
        minimum=1, maximum=MOST_DEGREE, auto=True),
    Key("ep", "integer", "expert-parallel degree", "1 in a given layout", "ep=8",
        minimum=1, maximum=MOST_DEGREE, auto=True),
    Key("etp", "integer", "tensor-parallel degree inside each expert", "the stack's", "etp=1",
        minimum=1, maximum=MOST_DEGREE),
    Key("dp", "integer", "data-parallel replicas", "fills gpus in a given layout", "dp=8",
        minimum=1, maximum=MOST_GPUS, auto=True),
    Key("shard", "choice", "what data parallelism shards: none is DDP, optimizer ZeRO-1, gradients ZeRO-2, "
        "parameters ZeRO-3 or FSDP", "auto when recommending, the stack's when a layout is given", "zero=3",
        choices=("none", "optimizer", "gradients", "parameters"), auto=True,
        spellings={"ddp": "none", "fsdp": "parameters",
                   "zero1": "optimizer", "zero2": "gradients", "zero3": "parameters",
                   "zero-1": "optimizer", "zero-2": "gradients", "zero-3": "parameters"}),
    Key("shard_degree", "integer", "ranks that share one copy; below dp·cp it is hybrid sharding (HSDP)", "dp·cp",
        "shard_degree=8", minimum=1, maximum=MOST_GPUS),
    Key("offload", "words", "what is kept in host memory", "nothing", "offload=optimizer,activations",
        choices=("optimizer", "parameters", "activations", "moments")),
)  # fmt: skip

_ANSWER = (
    Key("margin", "number", "share of the GPU's memory that is kept free", "0.05", "margin=0.1",
        minimum=0, maximum=0.9),
    Key("goal", "choice", "what a recommendation makes smallest", "gpus", "goal=cost",
        choices=("gpus", "cost", "time")),
    Key("tokens", "integer", "tokens to train on, for days and cost", "no days, no cost", "tokens=15T",
        minimum=1, maximum=10**16, suffixes="decimal"),
    Key("solve", "choice", "find the largest that fits on gpus, with the rest as asked", "nothing", "max=mb",
        words=("max",), choices=("micro_batch", "sequence_length"),
        spellings=dict.fromkeys(_BATCH_WORDS, "micro_batch") | dict.fromkeys(_LENGTH_WORDS, "sequence_length")),
    Key("command", "text", "the whole request as one line of text, instead of all other keys", "the other keys", "",
        minimum=1, maximum=MOST_CHARACTERS),
)  # fmt: skip

_FURTHER = (
    Key("stage", "integer", "pipeline rank (from 0) whose memory is asked for", "the fullest", "stage=0",
        minimum=0, maximum=MOST_DEGREE - 1),
    Key("stage_layers", "integers", "decoder layers of each stage in pipeline order, pp·vpp numbers", "an even split",
        "stage_layers=15,16,16,15", minimum=0, maximum=MOST_LAYERS, fewest=1, most=MOST_LAYERS),
    Key("pipeline_schedule", "choice", "order of forward and backward in the pipeline", "1f1b",
        "pipeline_schedule=gpipe",
        choices=("1f1b", "gpipe", "vocab-parallel-1", "vocab-parallel-2", "vocab-parallel-interlaced")),
    Key("vocab_multiple", "integer", "the vocabulary is padded to a multiple of this, tp already counted in",
        "128·tp for megatron, else 1", "vocab_multiple=1024", minimum=1, maximum=2**20),
    Key("cp_comm", "choice", "how context parallelism exchanges keys and values; a2a is Ulysses",
        "p2p; all-gather for torchtitan", "cp_comm=a2a", choices=("p2p", "all-gather", "a2a", "a2a+p2p")),
    Key("recompute_modules", "words", "what recompute=selective recomputes; op and all-to-all are torchtitan's",
        "core_attn for megatron, its op policy for torchtitan", "recompute_modules=core_attn,mlp",
        choices=("core_attn", "layernorm", "mlp", "moe", "moe_act", "mla_up_proj", "shared_experts",
                 "op", "all-to-all")),
    Key("kernels", "words", "fused kernels added to the stack's own; a leading - takes one away",
        "megatron: te, wgrad-accumulation, softmax, gelu, swiglu, rope; else none", "kernels=cross-entropy,-gelu",
        choices=("te", "wgrad-accumulation", "softmax", "gelu", "swiglu", "rope", "rmsnorm", "cross-entropy", "lora",
                 "grouped-gemm", "moe-permute", "te-op-fuser", "async-tp", "tiled-mlp")),
    Key("logits_dtype", "choice", "dtype the logits are kept in where the loss starts", "fp32", "logits_dtype=bf16",
        choices=("fp32", "bf16", "fp16"), spellings=_FLOATS),
    Key("residual_dtype", "choice", "dtype of the residual stream", "the compute dtype", "residual_dtype=fp32",
        choices=("fp32", "bf16", "fp16"), spellings=_FLOATS),
    Key("base_weights", "choice", "format of the frozen base of lora and qlora; nf4-dq: double-quantised",
        "bf16 for lora, nf4-dq for qlora", "base_weights=nf4",
        choices=("bf16", "fp16", "fp32", "nf4", "nf4-dq", "gptq-int4"), spellings=_FLOATS),
    Key("adapter_dtype", "choice", "dtype of adapters, their gradients and moments", "fp32", "adapter_dtype=bf16",
        choices=("fp32", "bf16", "fp16"), spellings=_FLOATS),
    Key("lora_dropout", "number", "dropout rate of the adapters; above 0 each target keeps a dropped copy of its input",
        "0", "lora_dropout=0.05", minimum=0, maximum=1),
    Key("optimizer_impl", "choice", "foreach makes temporaries as large as the parameters; in-backward frees "
        "gradients layer by layer", "foreach for huggingface, else fused", "optimizer_impl=foreach",
        choices=("foreach", "fused", "loop", "in-backward")),
    Key("moments_dtype", "choice", "dtype of the optimizer moments", "that of the tensor the optimizer updates",
        "moments_dtype=bf16", choices=("fp32", "bf16", "fp16"), spellings=_FLOATS),
    Key("master_dtype", "choice", "dtype of the master weights", "fp32", "master_dtype=fp32",
        choices=("fp32", "bf16", "fp16"), spellings=_FLOATS),
    Key("fp8_recipe", "choice", "how fp8 products are scaled", "tensorwise", "fp8_recipe=rowwise",
        choices=("tensorwise", "rowwise", "delayed", "blockwise", "mxfp8", "nvfp4")),
    Key("fp8_params", "boolean", "parameters are gathered or kept in 8 bits", "false", "fp8_params"),
    Key("bf16_layers", "integers", "first and last decoder layers that stay in bf16 under fp8", "0,0",
        "bf16_layers=0,5", minimum=0, maximum=MOST_LAYERS, fewest=2, most=2),
    Key("fsdp_version", "integer", "1 has flat parameters, 2 shards each parameter", "2 for torchtitan, else 1",
        "fsdp_version=2", minimum=1, maximum=2),
    Key("reshard_after_forward", "boolean", "false keeps gathered parameters between forward and backward",
        "true; false with pp", "reshard_after_forward=false"),
    Key("moe_dispatcher", "choice", "how tokens reach their experts", "all-to-all", "moe_dispatcher=deepep",
        choices=("all-gather", "all-to-all", "deepep", "hybridep")),
    Key("moe_capacity", "number", "capacity factor; tokens above it are dropped", "no token is dropped",
        "moe_capacity=1.0", minimum=0.01, maximum=1024),
    Key("moe_balanced", "boolean", "routing is forced to be even", "false", "moe_balanced"),
    Key("microbatch_group", "integer", "interleaved schedule: micro-batches through one chunk before the next starts",
        "pp", "microbatch_group=4", minimum=1, maximum=65_536),
    Key("cuda_graphs", "boolean", "CUDA graphs hold a pool of their own", "false", "cuda_graphs"),
    Key("deterministic", "boolean", "deterministic kernels; attention backward then needs more workspace", "false",
        "deterministic"),
    Key("partition_activations", "boolean", "saved layer inputs are split over tp (DeepSpeed, old Megatron)", "false",
        "partition_activations"),
    Key("allocator", "choice", "PyTorch's CUDA allocator; expandable segments waste less", "default",
        "allocator=expandable", choices=("default", "expandable")),
    Key("offload_fraction", "number", "share of what offload names that is on the host", "1.0",
        "offload_fraction=0.75", minimum=0, maximum=1),
)  # fmt: skip

#: Headings of the groups, for help and documentation.
GROUPS: Mapping[str, tuple[Key, ...]] = MappingProxyType(
    {
        "The run": _RUN,
        "How it trains": _TRAINING,
        "Layout": _LAYOUT,
        "The answer": _ANSWER,
        "Further keys (most people never say these)": _FURTHER,
    }
)
KEYS: Mapping[str, Key] = MappingProxyType({key.name: key for rows in GROUPS.values() for key in rows})
FURTHER_KEYS = frozenset(key.name for key in _FURTHER)
#: What may stand for a key, for error messages: the names that people use, and how many others there are.
KNOWN_KEYS = (
    ", ".join(key.name for rows in (_RUN, _TRAINING, _LAYOUT, _ANSWER) for key in rows)
    + f", or one of {len(_FURTHER)} further keys"
)
_BY_WORD: dict[str, Key] = {as_name(word): key for key in KEYS.values() for word in (key.name, *key.words)}
#: Words that set keys without being one; `service.requests.shorthands` says which.
SHORTHANDS = ("lora", "qlora", "zero", "fsdp", "ddp")


def find_key(word: str) -> Key | None:
    """The key that a word of text names: its JSON name or a short word, in any case, with - or _."""
    return _BY_WORD.get(as_name(word))


def nearest_keys(word: str, *, text: bool) -> tuple[str, ...]:
    """Keys that an unknown word may have meant: JSON names, or in `text` the short words too."""
    name = as_name(word[:80])
    if name in KNOWN_ELSEWHERE:
        return KNOWN_ELSEWHERE[name]
    if not text and name in _BY_WORD:
        return (_BY_WORD[name].name,)
    return nearest(name, (*_BY_WORD, *SHORTHANDS) if text else KEYS)
