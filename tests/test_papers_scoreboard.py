"""The scoreboard: claims are checked against the raw results, and the page says what they say."""

import shutil
from dataclasses import replace

import pytest

import papers_doubles as doubles
from augury.core.errors import InputError
from pages import ROOT
from papers import budget
from papers.catalog import PAPERS, item
from papers.claims import Claim, Pair, ahead, beats
from papers.scoreboard import BEGIN, END, LETTERS, PICTURE, Row, rows, text, write

RESULTS = ROOT / "docs" / "results"


@pytest.fixture
def there(tmp_path, monkeypatch):
    """The runs had these data; their files need only be there."""
    for name in ("mnist", "fashion_mnist", "kmnist10k"):
        (tmp_path / f"{name}.npz").touch()
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path))


def test_the_page_of_results_is_that_of_the_committed_results(there):
    page = (RESULTS / "README.md").read_text()
    assert page.partition(BEGIN)[2].partition(END)[0] == f"\n{text(rows(RESULTS))}", "python -m papers scoreboard"
    assert (RESULTS / PICTURE).is_file()


def test_a_page_is_not_written_over_with_fewer_items(monkeypatch, tmp_path):
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path))
    monkeypatch.setattr("papers.learning.find", lambda name: None)
    shutil.copytree(RESULTS, folder := tmp_path / "results")
    with pytest.raises(InputError, match=r"results of 29 items.*AUGURY_DATA"):
        write(folder)
    assert (folder / "README.md").read_text() == (RESULTS / "README.md").read_text()


def test_every_item_of_a_paper_says_what_could_refute_it(there):
    judged = rows(RESULTS)
    assert [(r.paper, r.item) for r in judged] == [(p, i) for p in LETTERS for i in PAPERS[p].items]
    assert [r.item for r in judged if not item(r.paper, r.item).claims] == ["verdicts"]  # ours, not paper D's


def test_claims_are_judged_by_the_means_over_seeds_and_what_fails_is_named():
    claim = ahead("LILA is ahead", "plain", lambda c: (c.variant,), why="too few data")
    results = [doubles.result(doubles.cell("lila", s), a) for s, a in ((0, 0.9), (1, 0.5))]
    rivals = [doubles.result(doubles.cell("plain", s), 0.6) for s in (0, 1)]
    assert claim.check([*results, *rivals]) == {"rotated": None}  # .3 ahead and .1 behind: .1 ± .2
    assert claim.check([results[1], *rivals]) == {"rotated": False} and claim.check(results) == {}
    held = {claim: {"a": False, "b": True}, Claim("other", lambda _: {}): {"c": True, "d": None}}
    held[Claim("the same elsewhere", lambda _: {}, "it is ours", ours=True)] = {"e": True, "f": False, "g": None}
    judged = [Row("lila", "table1", results, 3, held, [Pair("x", 1.0, 2.0)]), Row("lila", "table2", [], 5, {}, [])]
    shown = text([*judged, Row("lila", "recovery", results, 2, {}, [])])
    assert "1 of 2 items of the papers have results" in shown and "1 experiments of ours" in shown
    assert "**2 of 3 (67 %) comparisons" in shown and "With them it is 3 of 5 (60 %)." in shown
    assert "| 2 of 3 | 2 | 2 of 3, 1 within the error | 1 of 2, 1 within the error |" in shown
    assert "| A | table2 | 0 of 5 |" in shown and "| A | [recovery](lila_recovery.md) (ours) | 2 of 2 |" in shown
    assert "1 more are within one standard error" in shown and "- **A table1**, other: d.\n" in shown
    theirs, ours = shown.partition("What of ours does not:")[::2]
    assert "- **A table1**, LILA is ahead: not in 1 of 2 (a). Too few data.\n" in theirs
    assert "- **A table1**, the same elsewhere: not in 1 of 3 (f). It is ours.\n" in ours and ": g.\n" not in shown


def test_the_papers_have_29_items_and_what_fails_has_a_reason(there):
    judged = rows(RESULTS)
    assert len([r for r in judged if r.item not in PAPERS[r.paper].ours]) == 29
    assert [c.words for r in judged for c, held in r.held.items() if False in held.values() and not c.why] == []


def test_within_the_standard_error_nothing_is_decided():
    """Over seeds, and for one seed over its test images; other measures of one seed are taken at their word."""

    def of(*accuracies, method="lila", images=None):
        cells = [replace(doubles.cell(method, s), test_images=images) for s in range(len(accuracies))]
        return [doubles.result(c, a) for c, a in zip(cells, accuracies, strict=True)]

    assert beats(of(0.62, 0.61, 0.63), of(0.60, 0.61, 0.60)) is True
    assert beats(of(0.60, 0.61, 0.60), of(0.62, 0.61, 0.63)) is False
    assert beats(of(0.62, 0.58), of(0.60, 0.59)) is None
    assert [beats(of(a, images=2000), of(0.80, images=2000)) for a in (0.79, 0.811, 0.82)] == [None, None, True]
    assert beats(of(0.811), of(0.80)) is True


def test_the_budget_counts_what_is_missing_once_and_puts_items_without_results_first(tmp_path, there):
    found = budget.gaps(1, tmp_path)
    assert all(g.seconds == budget.UNKNOWN for g in found)
    every = {c.key for p in LETTERS for i in PAPERS[p].items for c in item(p, i).grid("small", [0])}
    assert sum(g.missing for g in found) == len(every)
    here = budget.gaps(1, RESULTS)
    assert [g.missing < g.cells for g in here] == sorted(g.missing < g.cells for g in here)
    assert "hours of one core" in budget.text(here)
