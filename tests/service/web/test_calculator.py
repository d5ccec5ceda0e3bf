"""The first page: one form, the answer below it, errors where they belong, and everything without JavaScript."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient

from service.database import Database
from tests.support.record import counts, entries

COMMAND = {"command": "8B seq=4k tp=8 gpu=H100"}


def text_of(page: str) -> str:
    """What a person reads, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def bar_of(page: str) -> ElementTree.Element:
    """The drawing of one GPU."""
    found = re.search(r"<svg.*?</svg>", page, re.DOTALL)
    assert found
    return ElementTree.fromstring(found[0])


def test_the_first_page_asks_and_gives_examples_that_work(client: FlaskClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert '<form class="ask" action="/" method="get">' in page.text
    examples = re.findall(r'<a href="(/\?command=[^"]+)"', page.text)
    assert len(examples) >= 4
    for example in examples:
        assert client.get(html.unescape(example)).status_code == 200


def test_no_page_runs_a_script_or_loads_anything_from_elsewhere(client: FlaskClient) -> None:
    for path in ("/", "/?command=gpt2+tp%3D1", "/docs/problems", "/nothing"):
        page = client.get(path, headers={"Accept": "text/html"}).text
        assert "<script" not in page and "javascript:" not in page and " style=" not in page
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', page)


def test_the_answer_has_the_numbers_of_the_api(client: FlaskClient, record: Database) -> None:
    sizing = client.get("/api/v1/estimate", query_string=COMMAND).get_json()
    page = client.get("/", query_string=COMMAND)
    read = text_of(page.text)

    assert page.status_code == 200
    assert sizing["verdict"]["text"] in read
    assert "8,030,261,248 parameters" in read
    for term in sizing["per_gpu"]["terms"]:
        assert f"{term['bytes'] / 2**30:.1f} GiB {term['bytes'] / 10**9:.1f} GB" in read, term["term"]
    weights = sizing["whole_model"]["terms"][0]["bytes"]
    assert f"{weights / 2**30:.1f} GiB {weights / 10**9:.1f} GB" in read
    assert sizing["warnings"][0]["message"] in read
    assert "bf16-mixed default" in read and "4096 as asked" in read
    assert counts(record)["sizing"] == 0


def test_the_bar_is_drawn_to_scale(client: FlaskClient) -> None:
    sizing = client.get("/api/v1/estimate", query_string=COMMAND).get_json()
    bar = bar_of(client.get("/", query_string=COMMAND).text)
    segments = {
        rect.attrib["class"].split("t-")[1]: float(rect.attrib["width"].rstrip("%"))
        for rect in bar.iter("rect")
        if "segment" in rect.attrib["class"]
    }
    memory = sizing["gpu"]["memory_bytes"]
    for term in sizing["per_gpu"]["terms"]:
        assert segments.get(term["term"], 0) == pytest.approx(100 * term["bytes"] / memory, abs=0.01)
    lines = {line.attrib["class"]: float(line.attrib["x1"].rstrip("%")) for line in bar.iter("line")}
    assert lines["capacity"] == 100
    assert lines["usable"] == pytest.approx(95, abs=0.01)  # the default margin is 5 %


def test_a_run_that_does_not_fit_reaches_beyond_the_capacity(client: FlaskClient) -> None:
    page = client.get("/", query_string={"command": "llama-3.1-405b tp=8"})
    bar = bar_of(page.text)
    [capacity] = [
        float(line.attrib["x1"].rstrip("%")) for line in bar.iter("line") if line.attrib["class"] == "capacity"
    ]
    assert capacity < 50
    assert "Does not fit" in text_of(page.text) and "Missing" in text_of(page.text)


def test_the_drawing_says_in_words_what_it_shows(client: FlaskClient) -> None:
    bar = bar_of(client.get("/", query_string=COMMAND).text)
    assert bar.attrib["role"] == "img"
    assert re.search(r"Weights 1\.9 GiB, .* GiB may be used", bar.findtext("desc") or "")


def test_a_wrong_command_is_marked_and_repaired_by_a_press(client: FlaskClient) -> None:
    page = client.get("/", query_string={"command": "gpt2 tpp=1 seq=8kk"})
    assert page.status_code == 422
    assert re.findall(r"<mark>(.*?)</mark>", page.text) == ["tpp=1", "8kk"]
    assert "2 things to put right" in page.text
    assert 'value="gpt2 tpp=1 seq=8kk"' in page.text
    assert "/?command=gpt2+tp%3D1+seq%3D8kk" in page.text


def test_wrong_fields_have_their_error_beside_them(client: FlaskClient) -> None:
    page = client.get("/?model=8B&micro_batch=two&tp=3&precision=")
    assert page.status_code == 422
    field = re.search(r'<input id="f-micro_batch".*?</ul>', page.text, re.DOTALL)
    assert field and 'aria-invalid="true"' in field[0] and 'value="two"' in field[0]
    assert "whole number" in text_of(field[0])
    assert '<details class="fields" open>' in page.text


def test_fields_and_command_give_the_same_answer(client: FlaskClient) -> None:
    by_fields = client.get("/?model=8B&sequence_length=4096&tp=8&gpu=H100&pp=&stack=")
    by_command = client.get("/", query_string=COMMAND)
    answers = [
        re.search(r'<section class="answer".*?</table>', page.text, re.DOTALL) for page in (by_fields, by_command)
    ]
    assert answers[0] and answers[1] and answers[0][0] == answers[1][0]


def test_what_people_type_is_never_markup(client: FlaskClient) -> None:
    page = client.get("/", query_string={"command": '"><script>alert(1)</script> gpt2'})
    assert "<script>" not in page.text
    page = client.get("/", query_string={"model": "<b>x", "micro_batch": '"><i>'})
    assert "<b>x" not in page.text and "<i>" not in page.text


def test_recording_leads_to_a_page_of_its_own(client: FlaskClient, record: Database) -> None:
    made = client.post("/sizings", data=COMMAND)
    assert made.status_code == 303
    page = client.get(made.headers["Location"])
    assert page.status_code == 200
    sizing = client.get(f"/api/v1{made.headers['Location']}").get_json()
    read = text_of(page.text)
    assert sizing["verdict"]["text"] in read and sizing["audit"]["leaf"] in read
    assert f"Asked: {COMMAND['command']}" in read
    entry = entries(record)[-1]
    assert (entry["via"], entry["subject"]) == ("web", sizing["id"])


def test_recording_something_wrong_shows_the_errors(client: FlaskClient, record: Database) -> None:
    page = client.post("/sizings", data={"command": "8B tp=3"})
    assert page.status_code == 422
    assert "to put right" in page.text
    assert counts(record)["sizing"] == 0


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}])
def test_a_form_on_another_site_records_nothing(client: FlaskClient, record: Database, headers: dict[str, str]) -> None:
    refused = client.post("/sizings", data=COMMAND, headers={**headers, "Accept": "text/html"})
    assert refused.status_code == 403
    assert counts(record)["sizing"] == 0


def test_our_own_form_records(client: FlaskClient) -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
    assert client.post("/sizings", data=COMMAND, headers=own).status_code == 303


def test_an_unknown_sizing_is_a_friendly_page(client: FlaskClient) -> None:
    page = client.get("/sizings/sz_00000000000000000000000000", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "No sizing has the id" in text_of(page.text) and "Back to the calculator" in page.text


def test_every_kind_of_problem_has_its_place_on_the_page(client: FlaskClient) -> None:
    problem = client.get("/api/v1/estimate").get_json()
    path, _, anchor = problem["type"].partition("#")
    assert f'id="{anchor}"' in client.get(path).text


def test_the_docs_page_uses_its_own_copy_of_everything(client: FlaskClient) -> None:
    page = client.get("/docs").text
    assert 'data-document="/api/v1/openapi.json"' in page
    for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        with client.get(path) as asset:
            assert asset.status_code == 200
            assert b"https://cdn" not in asset.data and b"unpkg.com" not in asset.data
