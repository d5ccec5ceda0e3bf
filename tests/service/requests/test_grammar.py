"""What people really type is read as they mean it."""

from typing import Any

import pytest

from service.requests.grammar import parse, read_command

COMMANDS: list[tuple[str, dict[str, Any]]] = [
    # the README's example, and the model alone
    ("70B seq=8k mb=2 gpu=H100", {"model": "70B", "sequence_length": 8192, "micro_batch": 2, "gpu": "H100"}),
    ("70b", {"model": "70b"}),
    ("70 B", {"model": "70B"}),
    ("70 billion", {"model": "70B"}),
    ("124M", {"model": "124M"}),
    ("llama3-70b", {"model": "llama3-70b"}),
    ("meta-llama/Llama-3.1-70B", {"model": "meta-llama/Llama-3.1-70B"}),
    ("llama 3 70b", {"model": "llama 3 70b"}),
    ("llama3.1:70b", {"model": "llama3.1:70b"}),
    ("8x7B", {"model": "8x7B"}),
    ("mixtral 8x22b", {"model": "mixtral 8x22b"}),
    ("gpt oss 20B", {"model": "gpt oss 20B"}),
    ("model=gpt-2", {"model": "gpt-2"}),
    ("model = llama 3 8b", {"model": "llama 3 8b"}),
    ('"llama 3 70b"', {"model": "llama 3 70b"}),
    # lengths and batches
    ("70B seq=8192", {"model": "70B", "sequence_length": 8192}),
    ("70B seq = 8192", {"model": "70B", "sequence_length": 8192}),
    ("70B seq= 8k", {"model": "70B", "sequence_length": 8192}),
    ("70B seq =8k", {"model": "70B", "sequence_length": 8192}),
    ("70B ctx:128K", {"model": "70B", "sequence_length": 131072}),
    ("70B ctx : 128K", {"model": "70B", "sequence_length": 131072}),
    ("70B seq 8k", {"model": "70B", "sequence_length": 8192}),
    ("70B seq = 8 k", {"model": "70B", "sequence_length": 8192}),
    ("70B s=1M", {"model": "70B", "sequence_length": 1048576}),
    ("70B gbs=4k mb:2", {"model": "70B", "global_batch": 4096, "micro_batch": 2}),
    ("70B mb=auto", {"model": "70B", "micro_batch": "auto"}),
    ("70B SEQ=8K MB=2", {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
    # GPUs
    ("70B 64xH100", {"model": "70B", "gpu": "H100", "gpus": 64}),
    ("70B 8 x a100-80g", {"model": "70B", "gpu": "a100-80g", "gpus": 8}),
    ("70B 8x H100", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B 8×H100", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B 8*H100", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B H100:8", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B H100x8", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B gpu=H100:8", {"model": "70B", "gpu": "H100", "gpus": 8}),
    ("70B A100-80GB:2", {"model": "70B", "gpu": "A100-80GB", "gpus": 2}),
    ("70B gpu=H100 80gb", {"model": "70B", "gpu": "H100 80gb"}),
    ("70B gpu=A100 80 GB gb=512", {"model": "70B", "gpu": "A100 80GB", "global_batch": 512}),
    ("70B 8x A100 80GB PCIe", {"model": "70B", "gpu": "A100 80GB PCIe", "gpus": 8}),
    ("gpu=H100 80gb 70B", {"model": "70B", "gpu": "H100 80gb"}),
    ("H100 70B", {"model": "70B", "gpu": "H100"}),
    ("70B gpu=RTX 4090 n=8", {"model": "70B", "gpu": "RTX 4090", "gpus": 8}),
    ("70B 4x RTX 6000 Ada", {"model": "70B", "gpu": "RTX 6000 Ada", "gpus": 4}),
    ("70B gpu=RTX PRO 6000 Blackwell", {"model": "70B", "gpu": "RTX PRO 6000 Blackwell"}),
    ("70B 8xrtx4090", {"model": "70B", "gpu": "rtx4090", "gpus": 8}),
    ("70B gpu=rtx4090", {"model": "70B", "gpu": "rtx4090"}),
    ("70B mi300x 16 GPUs", {"model": "70B", "gpu": "mi300x", "gpus": 16}),
    ("70B gpus=1k", {"model": "70B", "gpus": 1024}),
    ("70B gpu=H100,H200", {"model": "70B", "gpu": ["H100", "H200"]}),
    ("70B gpu=H100 80gb, H200 seq=8k", {"model": "70B", "gpu": ["H100 80gb", "H200"], "sequence_length": 8192}),
    ("gpu=H100, 70B", {"model": "70B", "gpu": "H100"}),
    ("70B gpu=any", {"model": "70B", "gpu": "any"}),
    ('70B gpu="RTX PRO 6000 Blackwell"', {"model": "70B", "gpu": "RTX PRO 6000 Blackwell"}),
    # methods, recomputation, sharding, degrees
    ("70B lora=16", {"model": "70B", "method": "lora", "lora_rank": 16}),
    ("qlora 70B", {"model": "70B", "method": "qlora"}),
    ("70B qlora rank=64 targets=q_proj,v_proj",
     {"model": "70B", "method": "qlora", "lora_rank": 64, "lora_targets": ["q_proj", "v_proj"]}),
    ("70B lora targets=attention", {"model": "70B", "method": "lora", "lora_targets": "attention"}),
    ("70B ckpt=full:20", {"model": "70B", "recompute": {"full_layers": 20}}),
    ("70B ac=Selective", {"model": "70B", "recompute": "selective"}),
    ("70B zero=3", {"model": "70B", "shard": "parameters"}),
    ("70B ZeRO-3", {"model": "70B", "shard": "parameters"}),
    ("70B zero1", {"model": "70B", "shard": "optimizer"}),
    ("70B zero 2", {"model": "70B", "shard": "gradients"}),
    ("70B zero=0", {"model": "70B", "shard": "none"}),
    ("70B fsdp", {"model": "70B", "shard": "parameters"}),
    ("70B FSDP2", {"model": "70B", "shard": "parameters", "fsdp_version": 2}),
    ("70B ddp", {"model": "70B", "shard": "none"}),
    ("70B tp4 pp2", {"model": "70B", "tp": 4, "pp": 2}),
    ("70B tp=4,pp=2,dp=auto", {"model": "70B", "tp": 4, "pp": 2, "dp": "auto"}),
    ("70B sp compile=false", {"model": "70B", "sp": True, "compile": False}),
    ("70B max=mb n=8", {"model": "70B", "solve": "micro_batch", "gpus": 8}),
    ("70B max=seq n=8", {"model": "70B", "solve": "sequence_length", "gpus": 8}),
    ("70B flash adamw-8bit bf16 megatron",
     {"model": "70B", "attention": "flash", "optimizer": "adamw-8bit", "precision": "bf16", "stack": "megatron"}),
    ("70B tokens=15T margin=5%", {"model": "70B", "tokens": 15_000_000_000_000, "margin": 0.05}),
    ("70B tokens = 2 trillion", {"model": "70B", "tokens": 2_000_000_000_000}),
    ("70B offload=none kernels=cross-entropy,-gelu",
     {"model": "70B", "offload": [], "kernels": ["cross-entropy", "-gelu"]}),
    ("70B stage_layers=15,16,16,15", {"model": "70B", "stage_layers": [15, 16, 16, 15]}),
    # flags
    ("70B --micro-batch 2 --compile --gpu H100",
     {"model": "70B", "micro_batch": 2, "compile": True, "gpu": "H100"}),
    ("--sequence-length=8k 70B --sp false -n 8", {"model": "70B", "sequence_length": 8192, "sp": False, "gpus": 8}),
    # objects
    ('{"parameters": 7e9} seq=4k', {"model": {"parameters": 7e9}, "sequence_length": 4096}),
    ('70B gpu={"memory_bytes": 85e9} recompute:{"full_layers": 3}',
     {"model": "70B", "gpu": {"memory_bytes": 85e9}, "recompute": {"full_layers": 3}}),
    # what phones, chat programs and prose do to text
    ("“llama 3 70b” seq=8k", {"model": "llama 3 70b", "sequence_length": 8192}),
    ("70B —micro-batch 2", {"model": "70B", "micro_batch": 2}),
    ("70B\u00a0seq=8k\u00a0mb=2", {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
    ("７０Ｂ ｓｅｑ＝８ｋ", {"model": "70B", "sequence_length": 8192}),
    ("llama‑3‑70b", {"model": "llama-3-70b"}),
    ("{“parameters”: 7e9}", {"model": {"parameters": 7e9}}),
    ("\u200b70B\u200b seq=8k", {"model": "70B", "sequence_length": 8192}),
    ("70B, seq=8k, mb=2;", {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
    ("70B - seq=8k", {"model": "70B", "sequence_length": 8192}),
    ('"70B seq=8k"', {"model": "70B", "sequence_length": 8192}),
    ("`70B seq=8k`", {"model": "70B", "sequence_length": 8192}),
    ("llama 3 70b with lora on 8 x H100 and seq=4k",
     {"model": "llama 3 70b", "method": "lora", "gpu": "H100", "gpus": 8, "sequence_length": 4096}),
    ("70B\n  seq=8k\n\tmb=2\n", {"model": "70B", "sequence_length": 8192, "micro_batch": 2}),
    ("", {}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "request_meant"), COMMANDS, ids=[text for text, _ in COMMANDS])
def test_a_command_means_what_its_writer_means(text: str, request_meant: dict[str, Any]) -> None:
    assert parse(text) == request_meant


def test_words_may_stand_in_any_order() -> None:
    words = ["70B", "seq=8k", "64xH100", "tp4", "lora=16", "compile", "ckpt=full"]
    meant = parse(" ".join(words))
    for turn in range(len(words)):
        assert parse(" ".join(words[turn:] + words[:turn])) == meant


def test_the_same_value_twice_is_no_contradiction() -> None:
    assert parse("70B seq=8k ctx=8192 zero=3 fsdp") == {"model": "70B", "sequence_length": 8192, "shard": "parameters"}


def test_a_command_knows_where_each_value_stands() -> None:
    command = read_command("llama 3 70b gpu=H1000 mb=2")
    assert {name: command.text[start:end] for name, (start, end) in command.places.items()} == {
        "model": "llama 3 70b", "gpu": "H1000", "micro_batch": "2",
    }  # fmt: skip
