"""What was not asked is told, by where it came from, without drowning it in switches that are off."""

from typing import Any

from service.terminal.assumptions import assumptions


def taken(value: Any, source: str) -> dict[str, Any]:
    return {"value": value, "from": source}


def test_inputs_of_the_request_and_absent_ones_are_no_assumptions() -> None:
    assert assumptions({"micro_batch": taken(2, "request"), "tokens": taken(None, "default")}) == []


def test_assumptions_stand_in_the_order_of_the_vocabulary_by_source() -> None:
    inputs = {
        "loss": taken("full", "stack"),
        "precision": taken("fp16-mixed", "gpu"),
        "optimizer": taken("adamw", "default"),
        "sequence_length": taken(4096, "model"),
        "method": taken("full", "default"),
    }
    assert assumptions(inputs) == [
        "by default: method=full, optimizer=adamw",
        "from the model: sequence_length=4k",
        "from the GPU: precision=fp16-mixed",
        "from the stack: loss=full",
    ]


def test_further_keys_that_are_off_are_only_counted() -> None:
    inputs = {
        "deterministic": taken(False, "default"),
        "fp8_params": taken(False, "default"),
        "cuda_graphs": taken(True, "default"),
        "stage": taken(0, "stack"),
    }
    assert assumptions(inputs) == [
        "by default: cuda_graphs=true",
        "from the stack: stage=0",
        "2 further keys at their defaults (--json lists them)",
    ]
