"""What a key of a sizing request is, and how a word finds its key.

The rows themselves stand in `service.requests.keys`. The schema, the command grammar, the command line, the help texts
and docs/commands.md are all driven by them: a key that has no row does not exist, and its range and meaning are said
nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["integer", "number", "boolean", "choice", "words", "integers", "model", "gpu", "text"]
#: What a suffix means in text: K = 1024 and M = 1024² ("binary"), or K, M, B, T in thousands ("decimal").
Suffixes = Literal["none", "binary", "decimal"]

AUTO = "auto"
#: Bounds from here on are powers of ten, and written as such.
MANY = 10**12
MOST_LAYERS = 4096
MOST_GPUS_COMPARED = 16
MODEL_SHAPE = (
    "a name or size such as llama-3-70b or 70B, or an object: "
    '{"parameters": n}, {"hf_config": {…}} or {"architecture": {…}}'
)
GPU_SHAPE = f'a name such as H100, a list of at most {MOST_GPUS_COMPARED}, any, or {{"memory_bytes": n}}'
FULL_LAYERS_SHAPE = f'{{"full_layers": n}} with n up to {MOST_LAYERS:,}'


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the request.

    `words` are its short spellings in text; `choices` the allowed words, of the value or of the items of a list.
    `spellings` maps further spellings of a choice that text may use. `whole` are words that stand for a whole list;
    `fewest` and `most` bound its length. `minimum` and `maximum` bound numbers (in lists: each item). `default` says
    in words what is taken when the key is absent.
    """

    name: str
    kind: Kind
    meaning: str
    default: str
    example: str
    words: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 0
    fewest: int = 0
    most: int = 64
    suffixes: Suffixes = "none"
    auto: bool = False

    @property
    def pointer(self) -> str:
        """JSON pointer to the key in a request."""
        return f"/{self.name}"

    @property
    def flag(self) -> str:
        """The key as a flag of the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_list(self) -> bool:
        """Whether text may give several values, separated by commas."""
        return self.kind in ("words", "integers", "gpu")

    @property
    def allowed(self) -> str:
        """What may stand here, in words, for error messages and help."""
        return f"{self._allowed()} or {AUTO}" if self.auto else self._allowed()

    def _allowed(self) -> str:
        match self.kind:
            case "integer":
                most = f"10^{len(str(self.maximum)) - 1}" if self.maximum >= MANY else f"{self.maximum:,}"
                return f"a whole number from {self.minimum:,} to {most}"
            case "number":
                return f"a number from {self.minimum:g} to {self.maximum:g}"
            case "boolean":
                return "true or false"
            case "choice":
                listed = ", ".join(self.choices)
                return f"{listed}, {FULL_LAYERS_SHAPE}" if self.name == "recompute" else listed
            case "words":
                listed = "a list of " + ", ".join(self.choices)
                return f"{', '.join(self.whole)}, or {listed}" if self.whole else listed
            case "integers":
                count = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most:,}"
                return f"a list of {count} whole numbers from {self.minimum:,} to {self.maximum:,}"
            case "model":
                return MODEL_SHAPE
            case "gpu":
                return GPU_SHAPE
            case "text":
                return f"text of at most {self.maximum:,} characters"


#: What other tools call things; never accepted, only answered with the right key.
KNOWN_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "batch": ("micro_batch", "global_batch"),
    "batch_size": ("micro_batch", "global_batch"),
    "micro_batch_size": ("micro_batch",),
    "per_device_train_batch_size": ("micro_batch",),
    "train_micro_batch_size_per_gpu": ("micro_batch",),
    "local_batch_size": ("micro_batch",),
    "global_batch_size": ("global_batch",),
    "train_batch_size": ("global_batch",),
    "gradient_accumulation_steps": ("global_batch",),
    "ga": ("global_batch",),
    "accum": ("global_batch",),
    "seq_len": ("sequence_length",),
    "seqlen": ("sequence_length",),
    "seq_length": ("sequence_length",),
    "max_length": ("sequence_length",),
    "max_seq_length": ("sequence_length",),
    "model_max_length": ("sequence_length",),
    "cutoff_len": ("sequence_length",),
    "block_size": ("sequence_length",),
    "context": ("sequence_length",),
    "context_length": ("sequence_length",),
    "gradient_checkpointing": ("recompute",),
    "activation_checkpointing": ("recompute",),
    "checkpointing": ("recompute",),
    "tensor_model_parallel_size": ("tp",),
    "tensor_parallel": ("tp",),
    "pipeline_model_parallel_size": ("pp",),
    "pipeline_parallel": ("pp",),
    "context_parallel_size": ("cp",),
    "expert_model_parallel_size": ("ep",),
    "data_parallel": ("dp",),
    "world_size": ("gpus",),
    "nodes": ("gpus",),
    "num_gpus": ("gpus",),
    "device": ("gpu",),
    "accelerator": ("gpu",),
    "peft": ("method",),
    "finetuning": ("method",),
    "r": ("lora_rank",),
    "quantization": ("method", "base_weights"),
    "framework": ("stack",),
    "bf16": ("precision",),
    "fp16": ("precision",),
}


def as_name(word: str) -> str:
    """A word as the key table writes it: lower case, underscores."""
    return word.lower().replace("-", "_")
