"""The frame of papers/: grids as data, results that survive, tables with standard errors, figures that repeat."""

import os
import signal
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import papers.reproduce as frame
import papers_doubles as doubles
from augury.core.errors import InputError, RunError
from pages import ROOT
from papers.__main__ import main as papers_command
from papers.catalog import PAPERS, Paper
from papers.executor import Failure
from papers.figures import GAP, colours, fields, legend, mosaic, panels, save, side_by_side
from papers.grid import run_grid
from papers.markdown import grouped, mean_se, spread, table
from papers.reproduce import Request, reproduce
from papers.results import Cell, append, narrowed, read
from refusal import refused

RESULTS = ROOT / "docs" / "results"


def test_a_key_names_the_run_and_does_not_depend_on_the_order_of_settings():
    one = Cell("mnist", "rotated", "mlp", "lila", 2, {"epochs": 3, "rate": 0.1}, 100)
    other = Cell("mnist", "rotated", "mlp", "lila", 2, {"rate": 0.1, "epochs": 3}, 100)
    assert one.key == other.key == "mnist:rotated:mlp:lila:2:a36e3e7c5b6e"
    changes = [{"seed": 3}, {"settings": {}}, {"subset": 5}, {"test_images": 5}, {"method": "lila/ef"}]
    assert one.key not in {replace(one, **change).key for change in changes}
    assert doubles.cell("lila/ef").algorithm == "lila" and doubles.cell("plain").algorithm == "plain"


def test_filters_keep_the_cells_that_pass_all():
    cells = doubles.grid("quick", range(3))
    kept = narrowed(cells, ["method=lila", "seed=0,2"])
    assert [(c.method, c.seed) for c in kept] == [("lila", 0), ("lila", 2)]
    for text, says in (
        ("methods=lila", "Did you mean 'method'"),
        ("method=lilla", "method must be one of lila, plain; got 'lilla'"),
        ("lila", "name=value"),
    ):
        refused(says, narrowed, cells, [text])


def test_results_come_back_the_later_wins_and_a_line_cut_short_costs_its_own_cell_only(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    a, b, c = (doubles.result(doubles.cell(seed=k), evidence=-3.5) for k in range(3))
    for entry in (a, b, replace(a, epoch=7)):
        append(path, entry)
    assert read([path, tmp_path / "none.jsonl"]) == {a.key: replace(a, epoch=7), b.key: b}
    path.write_bytes(path.read_bytes()[:-20])
    append(path, c)
    assert read([path]) == {a.key: a, b.key: b, c.key: c}


def test_each_result_is_in_the_file_before_the_next_cell_begins(tmp_path):
    path, seen = tmp_path / "r.jsonl", []

    def watch(outcome, done, total):
        seen.append((len(read([path])), done, total))

    run_grid(doubles.grid("quick", range(2)), doubles.run, path, device="meta", watch=watch)
    assert seen == [(1, 1, 4), (2, 2, 4), (3, 3, 4), (4, 4, 4)]
    assert {r.extra["device"] for r in read([path]).values()} == {"meta"}


def test_a_cell_that_fails_does_not_stop_the_others_and_is_not_kept(tmp_path):
    path = tmp_path / "r.jsonl"
    cells = [doubles.cell(fails=True), doubles.cell(broken=True), doubles.cell()]
    results, failures = run_grid(cells, doubles.run, path)
    assert [r.cell for r in results] == [cells[2]] and set(read([path])) == {cells[2].key}
    whys = ["the loss became nan", "ZeroDivisionError: a fault"]
    assert failures == [Failure(cell, why) for cell, why in zip(cells, whys, strict=False)]


@pytest.mark.slow
def test_processes_share_the_cells_and_the_cores(tmp_path):
    path, cells = tmp_path / "r.jsonl", doubles.grid("quick", range(2))
    results, failures = run_grid(cells, doubles.run_with_threads, path, jobs=2)
    assert not failures and {r.key for r in results} == {c.key for c in cells} == set(read([path]))
    assert os.getpid() not in {r.extra["pid"] for r in results}
    assert {r.extra["threads"] for r in results} == {max(1, (os.cpu_count() or 1) // 2)}


@pytest.mark.parametrize("executor", ["local", "ray"])
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_cell_that_lost_its_worker_runs_again_and_lands_once(tmp_path, executor, monkeypatch):
    if executor == "ray":
        pytest.importorskip("ray", reason="Ray is an extra")
    fork = get_context("fork")  # nine workers, none of which loads torch again; the test above spawns them
    monkeypatch.setattr("papers.executor.get_context", lambda method: fork)
    path, places = tmp_path / "r.jsonl", {"place": str(tmp_path)}
    first = doubles.cell(seed=0, after="1_0", **places)  # so that cell 2 begins in a pool that cell 1 has not broken
    cells = [first, *(doubles.cell(seed=s, losses=n, **places) for s, n in ((1, 1), (2, 99), (3, 0)))]
    results, failures = run_grid(cells, doubles.run_and_lose, path, jobs=2, executor=executor)
    assert sorted(r.cell.seed for r in results) == [0, 1, 3] and os.getpid() not in {r.extra["pid"] for r in results}
    assert [f.cell.seed for f in failures] == [2] and "lost 3 times" in failures[0].message
    assert len(path.read_text().splitlines()) == 3
    assert len(list(tmp_path.glob("2_*"))) == 3  # the first time and two more
    missing = [cell for cell in cells if cell.key not in read([path])]
    assert missing == [cells[2]]  # all that the next command runs


def test_an_executor_must_be_known_and_installed(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="executor must be one of local, ray; got 'slurm'"):
        run_grid([doubles.cell()], doubles.run, tmp_path / "r.jsonl", executor="slurm")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install -e '.\[ray\]'"):
        run_grid([doubles.cell()], doubles.run, tmp_path / "r.jsonl", executor="ray")


@pytest.fixture
def a_paper(monkeypatch):
    def use(**items):
        monkeypatch.setitem(frame.PAPERS, "lila", Paper("A paper", tuple(items)))
        monkeypatch.setattr(frame, "item", lambda paper, name: items[name])

    use(one=doubles.an_item(), two=doubles.an_item())
    return use


def test_a_second_run_does_only_what_is_missing_and_items_share_their_cells(a_paper, tmp_path):
    request = Request("lila", "one", seeds=1, out=tmp_path)
    assert reproduce(request).ran == 2
    again = reproduce(replace(request, seeds=3))
    assert (again.cells, again.ran) == (6, 4)
    found = reproduce(replace(request, item="two", seeds=3))
    assert found.ran == 0 and "row lila 0" in found.text and not found.lines.exists()


def test_an_interrupted_grid_keeps_what_was_done(a_paper, tmp_path):
    def interrupted(cell, device):
        if cell.seed == 1:
            raise KeyboardInterrupt
        return doubles.run(cell, device)

    a_paper(one=doubles.an_item(interrupted))
    request = Request("lila", "one", out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        reproduce(request)
    a_paper(one=doubles.an_item())
    assert reproduce(replace(request, write_only=True)).ran == 0
    assert reproduce(request).ran == 4


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_says_how_a_grid_continues(a_paper, tmp_path, capsys, name):
    a_paper(one=doubles.an_item(lambda cell, device: signal.raise_signal(getattr(signal, name))))
    with pytest.raises(SystemExit) as end:
        papers_command(["lila", "one", "--out", str(tmp_path)])
    assert end.value.code == 128 + getattr(signal, name)
    said = capsys.readouterr().err
    assert name in said and "continues with the cells that are missing" in " ".join(said.split())


def test_the_table_has_seeds_together_and_a_section_for_each_scale(a_paper, tmp_path):
    for scale in ("small", "quick"):
        reproduce(Request("lila", "one", scale, 2, ("method=lila",), out=tmp_path))
    found = reproduce(Request("lila", "one", "quick", 2, out=tmp_path))
    quick, small = found.text.index("## Scale: quick"), found.text.index("## Scale: small")
    assert small < quick and "plain" not in found.text[small:quick]
    assert "row lila 0\nrow lila 1\nrow plain 0\nrow plain 1\n" in found.text[quick:]
    assert "`python -m papers lila one --scale quick --seeds 2`" in found.text
    assert "Seeds: 0, 1; 4 runs, 8 seconds" in found.text and "2 cores, 4 GB" in found.text
    assert found.table.read_text() == found.text
    assert [p.name for p in found.figures] == ["lila_one_small_a.svg", "lila_one_quick_a.svg"]
    assert "![lila_one_quick_a](lila_one_quick_a.svg)" in found.text[quick:]
    assert ET.parse(found.figures[0]).getroot().tag.endswith("svg")


def test_results_of_other_settings_are_left_out_and_no_results_are_an_error(a_paper, tmp_path):
    refused("no results of lila one", reproduce, Request("lila", "one", out=tmp_path, write_only=True))
    append(tmp_path / "lila_one_small.jsonl", doubles.result(doubles.cell(seed=0, scale="small", rate=3)))
    found = reproduce(Request("lila", "one", seeds=1, out=tmp_path))
    assert found.ran == 2 and found.text.count("row lila 0") == 1


def test_if_every_cell_fails_the_first_reason_is_given(a_paper, tmp_path):
    def fails(cell, device):
        raise RunError("no such data")

    a_paper(one=doubles.an_item(fails))
    refused("no such data", reproduce, Request("lila", "one", out=tmp_path), error=RunError)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"paper": "lilla"}, "Did you mean 'lila'"),
        ({"item": "tabel1"}, "item of paper 'lila' must be one of"),
        ({"scale": "tiny"}, "scale must be one of"),
        ({"paper": "policies", "item": "table", "scale": "paper"}, "scale must be one of quick, small"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"jobs": 0}, "jobs must be at least 1"),
    ],
    ids=str,
)
def test_a_request_that_does_not_fit_is_refused(given, says):
    refused(says, Request, **{"paper": "lila", "item": "recovery", **given})


def test_quick_results_stay_out_of_the_documentation_and_matplotlib_is_asked_for(monkeypatch):
    assert Request("lila", "recovery", "quick").folder == frame.SCRATCH
    assert Request("lila", "recovery", "small").folder == frame.DOCS
    monkeypatch.setattr("papers.catalog.find_spec", lambda name: None)
    refused(r"matplotlib must be installed.*pip install -e '\.\[papers\]'", Request, "lila", "recovery")


WRITTEN = [(p, i) for p, paper in PAPERS.items() for i in paper.items if (RESULTS / f"{p}_{i}.md").is_file()]


@pytest.mark.parametrize(("paper", "item"), WRITTEN, ids=str)
def test_the_committed_tables_are_those_of_the_committed_results(paper, item, tmp_path, monkeypatch):
    """The runs had these data; their files need only be there."""
    for name in ("mnist", "fashion_mnist", "kmnist10k"):
        (tmp_path / f"{name}.npz").touch()
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path))
    for path in RESULTS.glob(f"{paper}_*_small.jsonl"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.setattr("papers.figures.Figure.savefig", lambda self, path, **options: path.touch())  # takes most of it
    found = reproduce(Request(paper, item, out=tmp_path, write_only=True))
    assert found.text == (RESULTS / f"{paper}_{item}.md").read_text()
    assert all((RESULTS / path.name).is_file() for path in found.figures)


def test_mean_and_standard_error_over_seeds_tables_and_groups():
    values = [0.91, 0.94, 0.96]
    mean, error = mean_se([*values, None])
    assert mean == pytest.approx(np.mean(values)) and error == pytest.approx(np.std(values, ddof=1) / 3**0.5)
    assert spread([0.91, 0.94, 0.96], 2, 100) == "93.67 ± 1.45"
    assert spread([0.5], 1) == "0.5" and spread([None]) == "-" and mean_se([]) is None
    assert table(["a", "b"], [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    groups = grouped([doubles.result(c) for c in doubles.grid("quick", range(2))], lambda cell: (cell.method,))
    seeds = {key: [r.cell.seed for r in group] for key, group in groups.items()}
    assert seeds == {("lila",): [0, 1], ("plain",): [0, 1]}


def test_pictures_in_their_colours():
    grey, signed = colours([[0, 99], [50, 0]], 99, signed=False), colours([[99, 0], [0, -99]], 99)
    assert grey[0, 1].tolist() == [1.0] * 3 and grey[0, 0].tolist() == [0.0] * 3
    assert signed[0, 0, 0] > signed[0, 0, 2] and signed[1, 1, 2] > signed[1, 1, 0] and signed[0, 1].min() > 0.95
    rgb = colours(np.array([[[127, 0, 0], [0, 0, -127]]]), 127)
    assert rgb.tolist() == [[[1.0, 0.5, 0.5], [0.5, 0.5, 0.0]]]
    row = side_by_side([grey, signed])
    assert row.shape == (2, 4 + GAP, 3)
    assert (row[:, 2 : 2 + GAP] == 1).all() and (row[:, 2 + GAP :] == signed).all()


def test_figures_show_their_words_and_repeat_to_the_byte(tmp_path):
    def drawn(k) -> Path:
        figure, axes = panels(2)
        for ax in axes:
            ax.plot([0, 1], [0, 1], label="a < b")
        legend(figure)
        save(figure, tmp_path / f"curves{k}.svg")
        tiles = [colours([[0, 99], [50, 0]], 99)] * 3
        save(mosaic([("views", tiles), ("maps", tiles)], "abc", "title"), tmp_path / f"mosaic{k}.svg")
        points = [(0.0, 0.0, 0), (1.0, 1.0, 1)]
        save(fields({"f": ([[0.0, 0.5], [1.0, 0.5]], points)}, 1.0), tmp_path / f"fields{k}.svg")
        return tmp_path

    drawn(0)
    drawn(1)
    for name, words in (("curves", ["a &lt; b"]), ("mosaic", ["views", "maps", "title"]), ("fields", ["p(class 1)"])):
        text = (tmp_path / f"{name}0.svg").read_text()
        assert text == (tmp_path / f"{name}1.svg").read_text() and "<dc:date>" not in text
        assert [word for word in words if text.count(f">{word}</text>") != 1] == []
