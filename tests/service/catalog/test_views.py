"""GET /api/v1/gpus and /models: the catalogue with its sources, a page at a time."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from service.catalog.facts import packaged


def test_a_gpu_with_memory_prices_and_sources(client: FlaskClient) -> None:
    gpu = client.get("/api/v1/gpus/h100-sxm5-80gb").get_json()
    assert (gpu["vendor"], gpu["compute_capability"], gpu["gpus_per_node"]) == ("NVIDIA", "9.0", 8)
    assert gpu["memory_bytes"] == 85_028_896_768  # CUDA's total of an H100 SXM: 81,090 MiB
    assert gpu["dense_tflops"]["bf16"] == 989.5  # the data sheet's 1,979 is with sparsity
    assert gpu["price_per_hour"]["usd"] == "3.24"
    assert len(gpu["offers"]) == 8 and all(offer["source"] for offer in gpu["offers"])
    assert gpu["sources"]


def test_a_model_with_counts_and_configuration(client: FlaskClient) -> None:
    model = client.get("/api/v1/models/llama-3.1-70b").get_json()
    assert model["parameters"] == model["published_parameters"] == 70_553_706_496
    assert model["hf_config"]["num_hidden_layers"] == 80
    assert model["bare_sizes"] == ["70B"]
    assert model["supported"] is True


def test_models_with_totals_only_are_listed_as_such(client: FlaskClient) -> None:
    models = client.get("/api/v1/models?limit=500").get_json()["items"]
    assert len(models) == 285
    unsupported = [model["id"] for model in models if not model["supported"]]
    assert unsupported and all(not packaged().models[id].supported for id in unsupported)


@pytest.mark.parametrize(("path", "total"), [("gpus", 100), ("models", 285)])
def test_pages_cover_everything_once(client: FlaskClient, path: str, total: int) -> None:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get(f"/api/v1/{path}", query_string={"limit": 30, **cursor}).get_json()
        seen += [item["id"] for item in page["items"]]
        if not page["next"]:
            break
        cursor = {"cursor": page["next"]}
    assert len(seen) == len(set(seen)) == total


def test_q_searches_names(client: FlaskClient) -> None:
    found = client.get("/api/v1/gpus?q=h100").get_json()["items"]
    assert {gpu["id"] for gpu in found} == {"h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb", "h100-sxm5-96gb"}
    assert client.get("/api/v1/models?q=no+such+model").get_json() == {"items": [], "next": None}


def test_an_unknown_id_gets_the_nearest_ones(client: FlaskClient) -> None:
    missing = client.get("/api/v1/gpus/h100-sxm-80gb")
    assert missing.status_code == 404
    assert "h100-sxm5-80gb" in missing.get_json()["errors"][0]["suggestions"]


def test_the_catalogue_may_be_kept_until_it_changes(client: FlaskClient) -> None:
    first = client.get("/api/v1/models/gpt2")
    kept = client.get("/api/v1/models/gpt2", headers={"If-None-Match": first.headers["ETag"]})
    assert (kept.status_code, kept.data) == (304, b"")
    assert first.headers["Trainmem-Catalog"] == packaged().digest


@pytest.mark.parametrize(
    ("query", "pointer"),
    [("limit=0", "/limit"), ("limit=501", "/limit"), ("cursor=x", "/cursor"), ("cursor=WzEsLTVd", "/cursor"),
     ("name=h100", "/name"), ("q=a&q=b", "/q")],
)  # fmt: skip
def test_a_query_that_cannot_be_read_is_refused(client: FlaskClient, query: str, pointer: str) -> None:
    refused = client.get(f"/api/v1/gpus?{query}")
    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.get_json()["errors"]] == [pointer]
