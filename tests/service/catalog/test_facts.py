"""The packaged catalogue: complete, sourced, quick to load, and one digest for one content."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from service.catalog.facts import Catalog, packaged


def test_every_row_of_the_data_is_there() -> None:
    catalog = packaged()
    assert len(catalog.gpus) == 100
    assert len(catalog.models) == 285
    assert sum(model.supported for model in catalog.models.values()) == 237


def test_an_h100_has_the_bytes_that_cuda_reports() -> None:
    gpu = packaged().gpus["h100-sxm5-80gb"]
    assert gpu.memory_bytes == 85_028_896_768
    assert gpu.label_gb == 80
    assert gpu.dense_tflops["bf16"] == 989.5
    assert (gpu.price_usd_per_hour, gpu.price_date) == (3.24, "2026-08-19")


def test_facts_keep_where_they_come_from() -> None:
    catalog = packaged()
    assert all(gpu.row["tflops_basis"] and gpu.row["confidence"] for gpu in catalog.gpus.values())
    assert all(gpu.row["memory_basis"] for gpu in catalog.gpus.values() if gpu.memory_bytes)
    assert all(offer.source and offer.date for gpu in catalog.gpus.values() for offer in gpu.prices)
    supported = [model.row for model in catalog.models.values() if model.supported]
    assert all(row.get("source_url") or row.get("sources_read") for row in supported)
    assert all(model.row["published_source"] for model in catalog.models.values() if model.published_parameters)
    assert all(model.row["meta_basis"] for model in catalog.models.values() if model.parameters)


def test_the_digest_follows_the_content_not_the_order_of_members() -> None:
    catalog = packaged()
    gpus = [dict(reversed(list(gpu.row.items()))) for gpu in catalog.gpus.values()]
    models = [model.row for model in catalog.models.values()]
    assert Catalog.from_rows(gpus, models).digest == catalog.digest
    gpus[0]["memory_bytes_total"] = 1
    assert Catalog.from_rows(gpus, models).digest != catalog.digest
    assert len(catalog.digest) == 64


def test_facts_cannot_be_changed() -> None:
    catalog = packaged()
    with pytest.raises(TypeError):
        catalog.gpus["h100-sxm5-80gb"] = catalog.gpus["t4"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalog.gpus["t4"].memory_bytes = 1  # type: ignore[misc]


def test_the_terminal_needs_no_web_framework_and_no_database_for_it() -> None:
    code = (
        "import sys\n"
        "from service.catalog.facts import packaged\n"
        "from service.catalog.resolve import resolve_gpu, resolve_model\n"
        "resolve_model(packaged(), '70B'); resolve_gpu(packaged(), 'H100')\n"
        "print(*(name for name in ('flask', 'sqlalchemy', 'marshmallow', 'numpy') if name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
