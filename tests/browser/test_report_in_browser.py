"""The report in a real browser: it renders, says nothing in the console, asks for nothing, and its slider moves."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from augury.records.exhibits import Gallery
from augury.report.page import write_report
from report_doubles import adapted_folder, audit_folder, exhibits, learned_run, put


def several(folder):
    one, two = learned_run(folder / "one"), learned_run(folder / "a_run_with_quite_a_long_name_for_a_phone")
    return write_report(one, two, audit_folder(folder / "x"), adapted_folder(folder / "y"), out=folder / "c.html")


PAGES = {
    "learned": lambda folder: write_report(learned_run(folder / "demo")),
    "unfinished": lambda folder: write_report(learned_run(folder / "demo", ended=False)),
    "audit": lambda folder: write_report(audit_folder(folder / "audit")),
    "adaptation": lambda folder: write_report(adapted_folder(folder / "adapted")),
    "comparison": several,
}


@pytest.fixture(params=sorted(PAGES))
def any_page(request, tmp_path):
    return PAGES[request.param](tmp_path)


@pytest.fixture
def learned(tmp_path):
    return PAGES["learned"](tmp_path)


CONTRAST = """(() => {
  const parse = (text) => {
    const n = text.match(/[\\d.]+/g).map(Number);
    return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[3] * top[k] + (1 - top[3]) * below[k]).concat(1);
  const light = (c) => {
    const l = c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement, box = element.getBoundingClientRect();
    if (!node.textContent.trim() || box.width < 2 || element.closest("script, style, noscript, .skip, .hide")) continue;
    const svg = element.closest("svg");
    const ink = parse(getComputedStyle(element)[svg ? "fill" : "color"]), paper = behind(svg || element);
    const pair = [light(over(ink, paper)), light(paper)].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (ratio < 4.5) poor.push([node.textContent.trim().slice(0, 30), element.className, ratio.toFixed(2)]);
  }
  return poor;
})()"""

NAMELESS = """(() => {
  const bad = [];
  for (const e of document.querySelectorAll("input, button, [role=img], [role=region], [tabindex]")) {
    const label = e.labels && e.labels.length ? e.labels[0].textContent : e.textContent;
    const name = e.getAttribute("aria-label") || label;
    if (!e.closest("[hidden]") && !name.trim()) bad.push(e.outerHTML.slice(0, 80));
  }
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((h) => Number(h.tagName[1]));
  levels.forEach((l, k) => { if (k && l > levels[k - 1] + 1) bad.push("heading " + k + " jumps to level " + l); });
  return bad;
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_renders_in_silence_alone_and_legibly(browser, any_page, dark):
    tab = browser.open(any_page, dark=dark)
    assert tab.complaints == []
    assert all(url.startswith(("file:", "data:image/")) for url in tab.requests)
    assert tab.run("document.querySelector('h1').textContent.length") > 0
    shade = tab.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((a, b) => a + Number(b), 0)")
    assert shade < 120 if dark else shade > 600
    assert tab.run(CONTRAST) == []
    assert tab.run(NAMELESS) == []


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_needs_no_sideways_scrolling(browser, any_page, width):
    tab = browser.open(any_page, width=width, height=800)
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run("document.querySelector('main').getBoundingClientRect().right") <= width


def shade(tab) -> int:
    """How bright the middle of the picture is."""
    pixels = np.asarray(Image.open(io.BytesIO(tab.picture("#picture"))).convert("L"))
    return int(pixels[pixels.shape[0] // 2, pixels.shape[1] // 2])


def grey(row: int, column: int, columns: int = 25) -> int:
    return int(np.linspace(20, 255, 3 * columns).astype(np.uint8).reshape(3, columns)[row, column])


def test_the_slider_moves_the_picture_and_the_answers(browser, learned):
    tab = browser.open(learned)
    assert shade(tab) == pytest.approx(grey(0, 12), abs=1)
    said = tab.run("document.querySelector('#answers').textContent")
    assert "lila predicts" in said and "plain predicts" in said
    tab.run("document.querySelector('#slider').focus()")
    tab.press("ArrowRight", 3)
    assert tab.run("document.querySelector('#slider').value") == "15"
    assert shade(tab) == pytest.approx(grey(0, 15), abs=1)
    assert tab.run("document.querySelector('#answers').textContent") != said
    assert tab.run("document.querySelector('#slider').getAttribute('aria-valuetext')") == "45.0°"
    assert "within the learned range" in tab.run("document.querySelector('#where').textContent")
    tab.press("End")
    assert shade(tab) == pytest.approx(grey(0, 24), abs=1)
    assert "beyond the learned range" in tab.run("document.querySelector('#where').textContent")
    assert tab.complaints == []


def test_inputs_and_transformations_are_chosen_by_mouse_and_by_key(browser, learned):
    tab = browser.open(learned)
    tab.run("document.querySelectorAll('#pick-example input')[2].click()")
    assert shade(tab) == pytest.approx(grey(2, 12), abs=1)
    tab.run("document.querySelectorAll('#pick-route input')[1].click()")
    assert tab.run("document.querySelector('#slider').value") == "0"
    assert shade(tab) == pytest.approx(grey(2, 0), abs=1)
    tab.run("document.querySelector('#pick-example input:checked').focus()")
    tab.press("ArrowLeft")
    assert shade(tab) == pytest.approx(grey(1, 0), abs=1)
    assert tab.run("document.querySelectorAll('#answers script').length") == 0


def test_a_wrong_answer_is_marked(browser, learned):
    tab = browser.open(learned)
    assert tab.run("document.querySelectorAll('#answers .wrong').length") == 0
    tab.run("document.querySelector('#slider').focus()")
    tab.press("ArrowRight")
    assert tab.run("document.querySelectorAll('#answers .wrong').length") == 2


def test_drawings_move_too(browser, tmp_path):
    run = learned_run(tmp_path / "demo")
    strokes = [[[[10, 20, 30, 40 + c]] for c in range(25)] for _ in range(3)]
    gallery = Gallery(3, 25, "line", strokes=strokes)
    put(run / "views" / "exhibits.json", exhibits("signal", galleries=[gallery, gallery]).to_json())
    tab = browser.open(write_report(run))
    d = "document.querySelector('#picture path.front').getAttribute('d')"
    assert tab.run(d) == "M10 20L30 52"
    tab.run("document.querySelector('#slider').focus()")
    tab.press("ArrowRight", 2)
    assert tab.run(d) == "M10 20L30 54" and tab.complaints == []


def test_plots_are_read_by_arrow_keys_and_pointer(browser, learned):
    tab = browser.open(learned)
    first = "document.querySelector('#training figure')"
    tab.run(f"{first}.querySelector('svg').focus()")
    tab.press("Home")
    assert tab.run(f"{first}.querySelector('.read').textContent") == "epoch 1: 30.0°"
    tab.press("ArrowRight")
    assert tab.run(f"{first}.querySelector('.read').textContent") == "epoch 2: 60.0°"
    box = json.loads(tab.run(f"JSON.stringify({first}.querySelector('svg').getBoundingClientRect())"))
    where = {"x": box["x"] + box["width"] - 16, "y": box["y"] + 60}
    tab.run(f"scrollTo(0, {box['y'] - 100})")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=where["x"], y=160)
    assert tab.run(f"{first}.querySelector('.read').textContent") == "epoch 5: 90.0°"


def test_the_slider_is_reached_by_tab_alone(browser, learned):
    tab = browser.open(learned)
    for _ in range(60):
        tab.press("Tab")
        if tab.run("document.activeElement.id") == "slider":
            return
    raise AssertionError("sixty presses of Tab did not reach the slider")


def test_a_page_full_of_pictures_is_small_and_opens_at_once(browser, tmp_path):
    """Noise compresses worst. The time is the page's own, not that of a busy machine."""
    run = learned_run(tmp_path / "demo")
    noise = np.random.default_rng(0).integers(0, 256, (3 * 96, 25 * 96, 3), dtype=np.uint8)
    for k in range(2):
        Image.fromarray(noise).save(run / "views" / f"orbit{k}.jpg", quality=85)
    galleries = [Gallery(3, 25, "picture", f"orbit{k}.jpg", 96, 96) for k in range(2)]
    put(run / "views" / "exhibits.json", exhibits(galleries=galleries).to_json())
    page = write_report(run)
    assert 1_000_000 < page.stat().st_size < 8_000_000
    tab = browser.open(page, timed=True)
    spent = {m["name"]: m["value"] for m in tab.call("Performance.getMetrics")["metrics"]}
    assert 0 < spent["TaskDuration"] < 2.0
