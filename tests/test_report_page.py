"""The page of a learned run: every section, nothing from outside, and no name that becomes code."""

import json
import math
import re
from html.parser import HTMLParser

import pytest

from augury.core.errors import RunError
from augury.records.exhibits import Answers, Gallery
from augury.report.page import render, write_report
from augury.report.plots import Line, Plot, draw
from augury.training.run_folder import read_run
from refusal import refused
from report_doubles import CLASSES, NASTY, adapted_folder, audit_folder, exhibits, learned_run, put, rows

VOID = {"meta", "br", "input", "img", "hr", "link"}


class Tree(HTMLParser):
    """Checks that tags close in order; keeps tags, ids, texts and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.texts = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def parsed(html: str) -> Tree:
    tree = Tree()
    tree.feed(html)
    tree.close()
    assert tree.open == []
    return tree


@pytest.fixture
def run(tmp_path):
    return learned_run(tmp_path / "demo")


def page(folder) -> str:
    return render([read_run(folder)])


def test_the_answer_comes_first_with_interval_truth_verdict_and_scores(run):
    tree = parsed(page(run))
    assert tree.text.index("The labels of most inputs do not change under") < tree.text.index("How it was learned")
    for words in ["rotation up to ±88.4°", "80.0° to 95.5°", "±90.0°", "invariant", "×1.10", "at least ×1.00"]:
        assert words in tree.text
    assert "No invariance to shear was found." in tree.text and "Undecided: scale_x." in tree.text
    assert "Planted in the data: rotation ±90.0°." in tree.text
    text = parsed(page(run)).text
    assert "86.7 %" in text and "without: 60.0 %" in text and "+26.7 points" in text
    assert "−750" in text and "without: −1,300" in text and "+550" in text and "1 min 15 s" in text


def test_all_sections_settings_and_the_command_are_there(run):
    tree = parsed(page(run))
    links = [value for name, value in tree.attributes if name == "href"]
    assert links == ["#main", "#answer", "#training", "#orbit", "#errors", "#settings"]
    assert {link[1:] for link in links} <= set(tree.ids) and len(tree.ids) == len(set(tree.ids))
    for words in ["Explore an orbit", "All numbers, epoch by epoch", "Copy", "All other settings"]:
        assert words in tree.text
    assert "two predicted as" not in tree.text and "predicted as 0 (twice)" in tree.text
    tree = parsed(page(run))
    assert f"augury learn 'x{NASTY}'" in tree.text and "sha256:1" in tree.text
    changed = tree.text[tree.text.index("not defaults") : tree.text.index("All other settings")]
    assert "epochs 5" in changed and "eta_rate" not in changed


def test_trajectories_evidence_accuracy_and_loss_are_drawn_by_whole_epochs(run):
    html = page(run)
    tree = parsed(html)
    labels = [value for name, value in tree.attributes if name == "aria-label"]
    assert any(label.startswith("rotation. By epoch, first to last: rotation: 30.0° to 90.0°") for label in labels)
    for title in ("Log evidence (nats)", "Test accuracy", "Training loss"):
        assert any(label.startswith(title) and "lila:" in label and "plain:" in label for label in labels)
    assert "planted ±90.0°" in tree.text and "kept" in tree.text
    put(run / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows(3)))
    marks = re.findall(r'class="mid"[^>]*>([^<]*)<', page(run))
    assert {"1", "2", "3"} <= set(marks) and "1.5" not in marks


def test_names_of_the_user_never_become_code(run):
    html = page(run)
    tree = parsed(html)
    assert tree.tags.count("script") == 2 and "<script>alert" not in html
    assert not any(name.startswith("on") for name, _ in tree.attributes)
    assert f"digits {NASTY}" in tree.text  # read as text, it is what the user wrote
    data = re.search(r'<script type="application/json" id="orbit-data">(.*?)</script>', html, re.DOTALL)[1]
    assert json.loads(data)["classes"] == list(CLASSES)


@pytest.mark.parametrize("make", [learned_run, audit_folder, adapted_folder], ids=lambda make: make.__name__)
def test_nothing_is_asked_of_the_network(tmp_path, make):
    html = page(make(tmp_path / "one"))
    tree = parsed(html)
    wanted = [value for name, value in tree.attributes if name in ("src", "href", "srcset", "action", "poster")]
    assert all(value.startswith("#") for value in wanted)
    assert re.findall(r"https?://[^\s'\"<)]+", html) == ["http://www.w3.org/2000/svg"] * html.count("w3.org")
    assert "@import" not in html and re.findall(r"url\((?!data:image/)", html) == []
    assert "default-src 'none'" in html


def test_the_slider_knows_what_was_learned(run):
    html = page(run)
    data = json.loads(re.search(r'id="orbit-data">(.*?)</script>', html, re.DOTALL)[1])
    turn, together = data["routes"]
    assert turn["zone"] == [0.25, 0.75] and turn["start"] == 12 and turn["at"][0] == "−180.0°"
    assert [turn["inside"][k] for k in (0, 5, 6, 18, 19)] == [False, False, True, True, False]
    assert together["zone"] == [0, 1] and together["at"][3] == "step 4"
    assert [model["name"] for model in data["models"]] == ["lila", "plain"]


def test_a_run_that_still_trains_has_a_page(tmp_path):
    run = learned_run(tmp_path / "young", ended=False)
    text = parsed(page(run)).text
    assert "has not ended: its epochs are done, its results are not written yet." in text
    assert "has no pictures" in text
    put(run / "metrics.jsonl", "".join((run / "metrics.jsonl").read_text().splitlines(keepends=True)[:3]))
    assert "has not ended: 3 of 5 epochs are done." in parsed(page(run)).text
    put(run / "metrics.jsonl", "")
    assert "No epoch has ended yet" in parsed(page(run)).text


def test_a_run_from_python_says_how_to_repeat_it_in_python(run):
    (run / "command.json").unlink()
    text = parsed(page(run)).text
    assert "augury.learn(" in text and "method='lila'," in text and "epochs=5," in text
    assert "eta_rate=" not in text


def test_what_there_is_not_is_not_shown(tmp_path, run):
    run = learned_run(tmp_path / "alone", baseline=False, log_evidence_without=None)
    assert "without:" not in parsed(page(run)).text
    silent = Answers("this model").to_json()
    left = exhibits("features").to_json() | {"routes": [], "draws": None, "answers": silent}
    put(run / "views" / "exhibits.json", left)
    assert "nothing to draw here" in parsed(page(run)).text


@pytest.mark.parametrize(("kind", "style"), [("signal", "line"), ("points", "dots"), ("coordinates", "dots")])
def test_what_is_no_picture_is_drawn(run, kind, style):
    strokes = [[[[10, 20, 30, 40 + c]] for c in range(25)] for _ in range(3)]
    behind = [[1, 2], []] if kind == "coordinates" else []
    gallery = Gallery(3, 25, style, strokes=strokes, backdrop=behind)
    put(run / "views" / "exhibits.json", exhibits(kind, galleries=[gallery, gallery]).to_json())
    html = page(run)
    data = json.loads(re.search(r'id="orbit-data">(.*?)</script>', html, re.DOTALL)[1])
    first = data["routes"][0]["paths"][0]
    assert first[1] == ("M10 20L30 41" if style == "line" else "M10 20h0M30 41h0")
    assert ("behind" in data["routes"][0]["behind"]) == (kind == "coordinates")


def test_regression_shows_values_and_a_scatter(run):
    put(run / "views" / "exhibits.json", exhibits("image", "regression").to_json())
    (run / "views" / "beside.json").unlink()
    html = page(run)
    assert "Predictions against targets" in parsed(html).text and 'class="confusion"' not in html


def test_pictures_that_would_make_the_page_too_large_are_left_out(run, monkeypatch):
    monkeypatch.setattr("augury.report.orbit.BUDGET", 10)
    text = parsed(page(run)).text
    assert "larger than 8 MB" in text and "Explore" not in text


@pytest.mark.parametrize(
    ("widths", "says"),
    [
        ({}, "without a distribution"),
        ({"rotation": ("not invariant", 2.0)}, "No invariance was found"),
        ({"rotation": ("undecided", 2.0)}, "do not determine rotation up to ±2.0°"),
        ({"rotation": ("undecided", 0.0)}, "do not determine rotation ."),
        ({"rotation": ("given", 30.0), "shear": ("given", 0.0)}, "given, rotation up to ±30.0°"),
        ({"rotation": ("given", 0.0)}, "given, no transformation at all."),
    ],
)
def test_the_headline_says_what_there_is_to_say(run, widths, says):
    values = json.loads((run / "invariance.json").read_text())
    values["widths"] = {
        n: {"value": v, "unit": "deg" if n == "rotation" else "", "verdict": w} for n, (w, v) in widths.items()
    }
    put(run / "invariance.json", values)
    assert says in parsed(page(run)).text


def test_the_file_stands_in_the_folder_or_where_it_was_asked_for(run, tmp_path):
    assert write_report(run) == run / "report.html"
    assert write_report(run) == run / "report.html"  # ours may be written again
    assert write_report(str(run), out=tmp_path / "new" / "a.html").is_file()


def test_what_cannot_be_read_or_written_is_an_error_that_says_so(run, tmp_path):
    other = tmp_path / "mine.html"
    other.write_text("<p>my own page</p>")
    (tmp_path / "d.html").mkdir()
    for out, says in (("mine.html", "not overwritten"), ("a.txt", r"must be an \.html"), ("d.html", "is a folder")):
        refused(says, write_report, run, out=tmp_path / out)
    refused("at least one run", write_report)
    refused("no such folder", write_report, tmp_path / "nowhere")
    refused("holds no run", write_report, tmp_path)
    put(run / "invariance.json", "{")
    refused(r"invariance\.json cannot be read", write_report, run, error=RunError)
    put(run / "invariance.json", {"wdths": {}})
    refused("another version", write_report, run, error=RunError)


def test_a_sheet_that_is_missing_is_an_error_and_none_is_read_from_elsewhere(run):
    left = exhibits().to_json()
    left["draws"]["file"] = "../../secret.png"
    put(run / "views" / "exhibits.json", left)
    (run.parent / "secret.png").write_bytes(b"secret")
    refused(r"views/secret\.png", write_report, run, error=RunError)


@pytest.mark.parametrize("y", [[1e308, -1e308, 0.0], [1e300] * 3, [5e-324, 0.0, 0.0], [math.nan, math.inf, 1.0]])
def test_numbers_that_no_axis_can_hold_are_left_out_of_a_figure(y):
    lines = [Line("a", [1, 2, 3], y), Line("b", [1, 2, 3], [1.0, 2.0, 3.0], spread=[1e308, 1.0, 1.0])]
    for drawn in (lines, lines[:1]):
        svg = draw(Plot("loss", drawn, levels=[("planted", math.inf)]))
        assert "nan" not in svg and "inf" not in svg and len(svg) < 5000
