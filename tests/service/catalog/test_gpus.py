"""What people call a GPU, and what they get."""

from __future__ import annotations

import math

import pytest

from service.catalog.facts import packaged
from service.catalog.resolve import resolve_gpu, resolve_gpus
from service.engine.errors import InvalidInput


def refused(spec: object) -> dict[str, tuple[str, ...]]:
    with pytest.raises(InvalidInput) as caught:
        resolve_gpus(packaged(), spec)
    return {error.pointer: error.suggestions for error in caught.value.errors}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("H100", "h100-sxm5-80gb"),
        ("h100", "h100-sxm5-80gb"),
        ("H100 80gb", "h100-sxm5-80gb"),
        ("H100-SXM-80GB", "h100-sxm5-80gb"),
        ("H100-80GB-SXM", "h100-sxm5-80gb"),
        ("H100-80G-SXM5", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("p5.48xlarge", "h100-sxm5-80gb"),
        ("H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl-94gb"),
        ("a100-80g", "a100-sxm4-80gb"),
        ("A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("a100_sxm", "a100-sxm4-80gb"),
        ("A100-40GB", "a100-sxm4-40gb"),
        ("H200", "h200-sxm-141gb"),
        ("GB200 NVL72", "gb200-nvl72"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("4090", "rtx-4090"),
        ("RTX4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("RTX 6000 Ada", "rtx-6000-ada"),
        ("L40S", "l40s"),
        ("TPU v5e", "tpu-v5e"),
        ("gaudi 3", "gaudi3"),
        ("Ｈ１００", "h100-sxm5-80gb"),
        ("H100 80 GB", "h100-sxm5-80gb"),
    ],
)
def test_spellings_that_people_use(said: str, meant: str) -> None:
    assert resolve_gpu(packaged(), said).gpu.id == meant


def test_every_id_alias_and_driver_name_finds_its_own_device() -> None:
    catalog = packaged()
    shared = {"RTX 6000", "rtx6000"}
    for fact in catalog.gpus.values():
        for spelling in (fact.id, fact.name, *fact.aliases, *fact.driver_names):
            if spelling not in shared:
                assert resolve_gpu(catalog, spelling).gpu.id == fact.id, spelling


def test_a_bare_a100_is_the_smaller_one_and_says_so() -> None:
    resolved = resolve_gpu(packaged(), "A100")
    assert resolved.gpu.id == "a100-sxm4-40gb"
    assert "a100-sxm4-80gb" in resolved.alternatives
    assert [code for code, _ in resolved.warnings] == ["ambiguous_gpu"]


def test_rtx_6000_is_the_name_of_three_cards_and_is_asked_back() -> None:
    assert refused("RTX 6000") == {"/gpu": ("rtx-pro-6000-blackwell", "rtx-6000-ada", "quadro-rtx-6000")}


def test_a_slip_of_the_finger_is_answered_with_the_nearest_names() -> None:
    assert {"H100", "H200"} <= set(refused("H1000")["/gpu"])


@pytest.mark.parametrize("spec", ["", "x", "H" * 10_000, None, 5, True, [], ["H100"] * 17, [["H100"]], {"memory": 1}])
def test_what_is_no_gpu_is_refused(spec: object) -> None:
    assert refused(spec)


@pytest.mark.parametrize(
    ("said", "gibibytes"),
    [
        pytest.param("MI300A", 128 * 0.99, id="HBM"),
        pytest.param("RTX 5060 Ti 16GB", 16 * 0.98, id="GeForce"),
        pytest.param("A2", 16 * 0.92, id="GDDR6 with ECC"),
    ],
)
def test_memory_that_nobody_reported_comes_from_the_label(said: str, gibibytes: float) -> None:
    resolved = resolve_gpu(packaged(), said)
    assert resolved.gpu.memory_estimated
    assert resolved.gpu.memory_bytes == pytest.approx(gibibytes * 2**30, abs=1)
    assert "gpu_memory_estimated" in [code for code, _ in resolved.warnings]


def test_other_vendors_are_sized_with_the_warning_that_their_runtime_is_not_modelled() -> None:
    resolved = resolve_gpu(packaged(), "Gaudi 3")
    assert not resolved.gpu.runtime_modelled
    assert [code for code, _ in resolved.warnings] == ["gpu_runtime_not_modelled"]


def test_a_t4_has_no_bf16() -> None:
    assert not resolve_gpu(packaged(), "T4").gpu.has_bf16
    assert resolve_gpu(packaged(), "H100").gpu.has_bf16


def test_a_gpu_of_ones_own() -> None:
    spec = {"memory_bytes": 64 * 2**30, "gpus_per_node": 4, "dense_tflops": 400, "price_usd_per_hour": 1.5}
    gpu = resolve_gpu(packaged(), spec).gpu
    assert (gpu.memory_bytes, gpu.gpus_per_node, gpu.price_usd_per_hour) == (68_719_476_736, 4, 1.5)
    assert gpu.dense_tflops["bf16"] == 400
    plain = resolve_gpu(packaged(), {"memory_bytes": 80e9}).gpu
    assert (plain.memory_bytes, plain.gpus_per_node, plain.has_bf16) == (80_000_000_000, 8, True)


def test_all_problems_of_a_gpu_object_come_at_once() -> None:
    spec = {"memory_bytes": -1, "gpus_per_nod": 4, "dense_tflops": math.nan, "price_usd_per_hour": "1"}
    assert refused(spec) == {
        "/gpu/gpus_per_nod": ("gpus_per_node", "price_usd_per_hour"),
        "/gpu/memory_bytes": (),
        "/gpu/price_usd_per_hour": (),
        "/gpu/dense_tflops": (),
    }


@pytest.mark.parametrize("memory", [0, 10**30, True, "80GB", 1.5, math.inf])
def test_memory_that_cannot_be_is_refused(memory: object) -> None:
    assert set(refused({"memory_bytes": memory})) == {"/gpu/memory_bytes"}


def test_a_list_is_compared_in_its_order_each_device_once() -> None:
    found = resolve_gpus(packaged(), ["A100-80GB", "H100", "h100-sxm5-80gb"])
    assert [resolved.gpu.id for resolved in found] == ["a100-sxm4-80gb", "h100-sxm5-80gb"]


def test_every_bad_entry_of_a_list_is_pointed_at() -> None:
    assert set(refused(["H100", "nope", 3])) == {"/gpu/1", "/gpu/2"}


def test_any_is_every_nvidia_and_amd_data_centre_device_whose_memory_is_known() -> None:
    found = {resolved.gpu.id: resolved.gpu for resolved in resolve_gpus(packaged(), "any")}
    assert {"h100-sxm5-80gb", "mi300x", "t4", "b200-sxm-180gb", "a10"} <= set(found)
    assert not {"rtx-4090", "tpu-v5e", "mi300a", "gb10-dgx-spark", "rtx-pro-6000-blackwell"} & set(found)
    assert not any(gpu.memory_estimated for gpu in found.values())
