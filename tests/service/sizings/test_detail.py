"""`GET /estimate?detail=rows`: the ledger over HTTP."""

from __future__ import annotations

from flask.testing import FlaskClient

QUESTION = "/api/v1/estimate?model=llama-3.1-8b&gpus=8&dp=8&seq=4k"


def test_rows_of_one_term_sum_to_its_largest_moment(client: FlaskClient) -> None:
    body = client.get(f"{QUESTION}&detail=rows&term=activations").get_json()
    largest = max(moment["terms"]["activations"] for moment in body["per_gpu"]["moments"])
    assert sum(row["total_bytes"] for row in body["rows"]) == largest > 0
    assert {"formula", "substitution", "why", "source", "group"} <= set(body["rows"][0])


def test_without_detail_there_are_no_rows(client: FlaskClient) -> None:
    assert "rows" not in client.get(QUESTION).get_json()


def test_an_unknown_detail_or_term_is_refused_with_what_is_allowed(client: FlaskClient) -> None:
    for query, pointer, meant in (("detail=row", "/detail", "rows"), ("term=activation", "/term", "activations")):
        refused = client.get(f"{QUESTION}&{query}")
        assert refused.status_code == 422
        error = refused.get_json()["errors"][0]
        assert error["pointer"] == pointer
        assert meant in error["suggestions"]
