"""The pages of audits, adaptations and comparisons."""

import json

import pytest

from augury.records.exhibits import Gallery
from augury.records.results import AUDIT_VERDICTS, Bound
from augury.report.compared import as_object, remarks, tables
from augury.report.page import render
from augury.training.run_folder import read_run
from report_doubles import NASTY, adapted_folder, audit_folder, learned_run, put
from test_report_page import page, parsed


def test_an_audit_has_verdict_curves_floor_worst_cases_and_spectrum(tmp_path):
    html = page(audit_folder(tmp_path / "a"))
    tree = parsed(html)
    for words in [
        "The model is sensitive to",
        "Because.",
        "Do this.",
        "noise floor",
        "limit",
        "Worst cases",
        "Spectrum",
    ]:
        assert words in tree.text
    labels = [value for name, value in tree.attributes if name == "aria-label"]
    curve = next(label for label in labels if label.startswith("Saliency similarity"))
    for words in ("By strength (°)", "the model: 0.8 to 0.2", "noise floor: 0.97 to 0.97"):
        assert words in curve
    assert "input 7, class 0: saliency of the view" in labels
    assert "at 135.0°, <script>" in tree.text and "2.weight" in tree.text and "4.2" in tree.text
    assert "augury audit runs/a digits -g rotation" in tree.text
    assert tree.tags.count("script") == 1 and "<script>alert" not in html


@pytest.mark.parametrize("verdict", AUDIT_VERDICTS)
def test_every_verdict_has_a_sentence(tmp_path, verdict):
    text = parsed(page(audit_folder(tmp_path / "a", verdict=verdict))).text
    assert verdict in text and NASTY in text.split("Because")[0]


DRAWN = {
    "Such inputs are not drawn.": None,
    "Saliency maps of such inputs are not drawn.": Gallery(2, 2, "dots", strokes=[[[[1, 2]]] * 2] * 2),
    "an invariant model shows the same map twice": Gallery(2, 4, "line", strokes=[[[[1, 2, 3, 4]]] * 4] * 2),
}


@pytest.mark.parametrize("says", DRAWN)
def test_worst_cases_are_drawn_or_said_not_to_be(tmp_path, says):
    assert says in parsed(page(audit_folder(tmp_path / "a", DRAWN[says]))).text


def test_an_audit_of_one_strength_has_no_line_but_a_point(tmp_path):
    html = page(audit_folder(tmp_path / "a", levels=1))
    assert "By strength" in parsed(html).text and "NaN" not in html


def test_an_adaptation_shows_descriptor_trials_and_bound(tmp_path):
    text = parsed(page(adapted_folder(tmp_path / "a"))).text
    for words in [
        "This task:",
        "rotation 1.00",
        "91.0 %",
        "5 descriptors tried",
        "at most 0.9",
        "complexity of the head",
    ]:
        assert words in text
    assert "vacuous" not in text and "With probability 95 %" in text and "training examples 100" in text
    big = Bound.of(0.1, 10.0, 15.0, 100, 9, 0.05).to_json()
    assert "so here the bound is vacuous" in parsed(page(adapted_folder(tmp_path / "a", bound=big))).text
    plain = parsed(page(adapted_folder(tmp_path / "b", descriptor={}, trials=[], words=""))).text
    assert "plain readout" in plain and "Descriptors tried" not in plain


@pytest.fixture
def several(tmp_path):
    one, two = learned_run(tmp_path / "one"), learned_run(tmp_path / "two", test_accuracy=0.5)
    others = audit_folder(tmp_path / "three"), adapted_folder(tmp_path / "four")
    return [read_run(folder) for folder in (one, two, *others)]


def test_several_are_side_by_side_with_a_column_for_each_and_a_row_for_each_figure(several):
    html = render(several)
    tree = parsed(html)
    for words in [
        "4 runs",
        "What was learned",
        "Audits",
        "Adaptations",
        "86.7 %",
        "50.0 %",
        "±88.4° (invariant, planted ±90.0°)",
    ]:
        assert words in tree.text
    labels = [value for name, value in tree.attributes if name == "aria-label"]
    assert any(label.startswith("rotation. By epoch") and "one:" in label and "two:" in label for label in labels)
    assert "<script>alert" not in html and tree.tags.count("script") == 1
    learned, audits, adapted = tables(several)
    assert learned[1] == ["", "one", "two"] and audits[1] == ["", "three"] and adapted[1] == ["", "four"]
    body = {row[0]: row[1:] for row in learned[2]}
    assert body["test accuracy"] == ["86.7 %", "50.0 %"] and body["log evidence"] == ["−750", "−750"]
    assert "test error (RMSE)" not in body
    assert {row[0]: row[1:] for row in audits[2]}["verdict"] == ["sensitive"]


def test_runs_that_cannot_be_compared_are_said_so(tmp_path):
    one, two = learned_run(tmp_path / "x" / "a"), learned_run(tmp_path / "y" / "a", ended=False)
    assert remarks([read_run(one), read_run(one)]) == []
    config = json.loads((two / "config.json").read_text())
    config["data"]["fingerprint"] = "sha256:2"
    put(two / "config.json", {**config, "structure": "diag"})
    said = " ".join(remarks([read_run(one), read_run(two)]))
    assert "same data" in said and "different ways" in said and "has not ended" in said
    assert [row["name"] for row in as_object([read_run(one), read_run(two)])["runs"]] == [str(one), str(two)]
