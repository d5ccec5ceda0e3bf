"""The vocabulary is one stable interface: its names, its short words, and nothing said twice."""

from service.requests.grammar import parse
from service.requests.keys import GROUPS, KEYS, find_key, nearest_keys
from service.requests.request import KEY_NAMES

# The JSON names of the contract, copied from it by hand.
SECTION_1 = """
model sequence_length micro_batch global_batch gpu gpus method lora_rank lora_targets precision optimizer gradient_dtype
stack attention loss recompute compile tp sp pp vpp cp ep etp dp shard shard_degree offload margin goal tokens solve
command
"""
FURTHER = """
stage stage_layers pipeline_schedule vocab_multiple cp_comm recompute_modules kernels logits_dtype residual_dtype
base_weights adapter_dtype lora_dropout optimizer_impl moments_dtype master_dtype fp8_recipe fp8_params bf16_layers
fsdp_version reshard_after_forward moe_dispatcher moe_capacity moe_balanced microbatch_group cuda_graphs deterministic
partition_activations allocator offload_fraction
"""
SHORT_WORDS = {
    "seq": "sequence_length", "s": "sequence_length", "ctx": "sequence_length",
    "mb": "micro_batch", "mbs": "micro_batch", "bs": "micro_batch",
    "gb": "global_batch", "gbs": "global_batch",
    "n": "gpus", "rank": "lora_rank", "targets": "lora_targets",
    "prec": "precision", "dtype": "precision", "opt": "optimizer", "grads": "gradient_dtype",
    "attn": "attention", "ckpt": "recompute", "ac": "recompute", "max": "solve",
}  # fmt: skip


def test_every_key_of_the_contract_is_there_and_no_other() -> None:
    assert list(KEYS) == (SECTION_1 + FURTHER).split()


def test_the_request_has_one_attribute_for_each_key_in_the_same_order() -> None:
    assert list(KEY_NAMES) == list(KEYS)


def test_short_words_name_the_keys_of_the_contract() -> None:
    assert {word: key.name for key in KEYS.values() for word in key.words} == SHORT_WORDS


def test_a_key_is_found_in_any_case_and_with_hyphens() -> None:
    assert find_key("Micro-Batch") is KEYS["micro_batch"]
    assert find_key("SEQ") is KEYS["sequence_length"]
    assert find_key("sqe") is None


def test_every_example_of_the_vocabulary_is_a_command_that_sets_its_key() -> None:
    for key in KEYS.values():
        if key.example:
            assert key.name in parse(key.example), key.name


def test_every_group_has_keys_and_every_key_says_what_it_means_and_what_it_defaults_to() -> None:
    assert [key.name for rows in GROUPS.values() for key in rows] == list(KEYS)
    assert all(key.meaning and key.default and key.allowed for key in KEYS.values())


def test_what_other_tools_call_a_key_is_answered_with_ours() -> None:
    assert nearest_keys("per_device_train_batch_size", text=False) == ("micro_batch",)
    assert nearest_keys("tensor-model-parallel-size", text=True) == ("tp",)
    assert nearest_keys("batch", text=True) == ("micro_batch", "global_batch")


def test_a_short_word_in_json_is_answered_with_the_json_name() -> None:
    assert nearest_keys("seq", text=False) == ("sequence_length",)
