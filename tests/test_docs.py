"""What the documentation says runs, and names what exists."""

import importlib
import re
import sys

import pytest

from pages import ROOT, fences, run_page, small_budgets

DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "results" not in p.parts)
PROGRAMS = [p for p in PAGES if any(fence.kind in ("python", "sh") for fence in fences(p))]


def name(page):
    return str(page.relative_to(DOCS).with_suffix(""))


@pytest.fixture
def fill(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("fill")


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("page", PROGRAMS, ids=name)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["augury"])
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AUGURY_DATA", raising=False)
    small_budgets(monkeypatch)
    assert run_page(page) > 0


LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
SOURCE = re.compile(r"`((?:src/augury|tests|benchmarks|examples|docs|papers)/[\w/.]+\.\w+)`")
ROOMS = "core data transforms models curvature evidence methods training audit export report cli"
ROOM = re.compile(rf"`((?:{ROOMS.replace(' ', '|')})/[\w/]+\.py)`")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall("".join(re.split(r"^```", text, flags=re.MULTILINE)[::2])):
        assert (page.parent / link).exists(), f"{link} leads nowhere"
    for path in SOURCE.findall(text):
        assert (ROOT / path).exists(), f"there is no {path}"
    for path in ROOM.findall(text):
        assert (ROOT / "src" / "augury" / path).exists(), f"there is no {path}"


INCLUDE = re.compile(r"```\{include\} (\S+)\n(?::relative-docs: (\S+)\n)?```")


def test_links_of_an_included_file_are_written_anew():
    """CHANGELOG.md links to docs/scale.md, which is scale.md from where it is included; sphinx stops at others."""
    for page in PAGES:
        for file, moved in INCLUDE.findall(page.read_text()):
            links = LINK.findall((page.parent / file).read_text())
            assert all(moved and link.startswith(moved) for link in links), f"{page.name}: {links}"


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in PAGES:
        for fence in fences(page):
            if fence.kind == "{toctree}":
                words = [line for line in fence.text.splitlines() if line and not line.startswith(":")]
                listed |= {(page.parent / word).with_suffix(".md").resolve() for word in words if "*" not in word}
    assert {p.resolve() for p in PAGES} - listed == {(DOCS / "index.md").resolve()}
    results = {path for path in listed if path.parent.name == "results"}
    assert results == {(DOCS / "results" / "README.md").resolve()}  # the others are linked to, not in the sidebar
    assert "results/*" not in (DOCS / "index.md").read_text()


def test_marks_on_pages_can_be_filled_and_every_paper_has_its_items(fill):
    from papers.catalog import PAPERS

    marks = {mark for page in PAGES for mark in fill.MARK.findall(page.read_text(encoding="utf-8"))}
    assert {name for name, _ in marks} == set(fill.FILLS)
    assert {paper for name, paper in marks if name == "items"} == set(PAPERS)
    for page in PAGES:
        assert "<!-- fill" not in fill.filled(page.read_text(encoding="utf-8"))


def test_the_reference_has_every_public_name_and_every_command(fill):
    import augury
    from augury.cli.main import app

    assert sorted(re.findall(r"^### (\w+)", fill.api(), re.M)) == sorted(augury.PUBLIC)
    shown = set(re.findall(r"^## (\w+)", fill.commands(), re.MULTILINE))
    assert {command.callback.__name__ for command in app.registered_commands} <= shown


def test_settings_are_shown_with_their_docstrings(fill):
    assert "| `samples` | `8` | S, views per input in training;" in fill.settings()


def test_the_page_of_inputs_is_up_to_date(fill):
    import fill_inputs

    assert fill_inputs.PAGE.read_text() == fill_inputs.page(), "run python docs/fill_inputs.py"
    assert all(f"| {status} |" in fill_inputs.page() for status in ("accepted", "refused", "asked about"))
