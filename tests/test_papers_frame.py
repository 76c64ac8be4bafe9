"""The reproduction frame: grids as data, results that survive, tables with honest errors."""

import os
from dataclasses import replace

import numpy as np
import pytest

import papers.reproduce as frame
import papers_doubles as doubles
from augury.core.errors import InputError, RunError
from papers.cell import Cell, narrowed
from papers.grid import Failure, run_grid
from papers.item import Paper
from papers.markdown import grouped, mean_se, spread, table
from papers.reproduce import Request, reproduce
from papers.results import append, read


def test_a_key_names_the_run_and_does_not_depend_on_the_order_of_settings():
    one = Cell("mnist", "rotated", "mlp", "lila", 2, {"epochs": 3, "rate": 0.1}, 100)
    other = Cell("mnist", "rotated", "mlp", "lila", 2, {"rate": 0.1, "epochs": 3}, 100)
    assert one.key == other.key == "mnist:rotated:mlp:lila:2:a36e3e7c5b6e"


@pytest.mark.parametrize(
    "change",
    [{"seed": 3}, {"settings": {"epochs": 4}}, {"subset": 5}, {"test_images": 5}, {"method": "lila/ef"}],
    ids=str,
)
def test_a_key_changes_with_all_that_changes_the_run(change):
    base = Cell("mnist", "rotated", "mlp", "lila", 2, {"epochs": 3}, 100)
    assert replace(base, **change).key != base.key


def test_what_follows_a_slash_only_names_a_row():
    assert doubles.cell("lila/ef").algorithm == "lila" and doubles.cell("plain").algorithm == "plain"


def test_filters_keep_the_cells_that_pass_all():
    cells = doubles.grid("quick", range(3))
    kept = narrowed(cells, ["method=lila", "seed=0,2"])
    assert [(c.method, c.seed) for c in kept] == [("lila", 0), ("lila", 2)]
    with pytest.raises(InputError, match="Did you mean 'method'"):
        narrowed(cells, ["methods=lila"])
    with pytest.raises(InputError, match="method must be one of lila, plain; got 'lilla'"):
        narrowed(cells, ["method=lilla"])
    with pytest.raises(InputError, match="name=value"):
        narrowed(cells, ["lila"])


def test_results_come_back_from_their_file_and_the_later_wins(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    first, second = doubles.result(doubles.cell()), doubles.result(doubles.cell(seed=1), evidence=-3.5)
    for entry in (first, second, replace(first, epoch=7)):
        append(path, entry)
    found = read([path, tmp_path / "none.jsonl"])
    assert found == {first.key: replace(first, epoch=7), second.key: second}


def test_a_line_that_was_cut_short_costs_its_own_cell_only(tmp_path):
    path = tmp_path / "r.jsonl"
    a, b, c = (doubles.result(doubles.cell(seed=k)) for k in range(3))
    append(path, a)
    append(path, b)
    path.write_bytes(path.read_bytes()[:-20])
    assert set(read([path])) == {a.key}
    append(path, c)
    assert set(read([path])) == {a.key, c.key}


def test_each_result_is_in_the_file_before_the_next_cell_begins(tmp_path):
    path, seen = tmp_path / "r.jsonl", []
    run_grid(
        doubles.grid("quick", range(2)),
        doubles.run,
        path,
        device="meta",
        watch=lambda outcome, done, total: seen.append((len(read([path])), done, total)),
    )
    assert seen == [(1, 1, 4), (2, 2, 4), (3, 3, 4), (4, 4, 4)]
    assert {r.extra["device"] for r in read([path]).values()} == {"meta"}


def test_a_cell_that_fails_does_not_stop_the_others_and_is_not_kept(tmp_path):
    path = tmp_path / "r.jsonl"
    cells = [doubles.cell(fails=True), doubles.cell(broken=True), doubles.cell()]
    results, failures = run_grid(cells, doubles.run, path)
    assert [r.cell for r in results] == [cells[2]] and set(read([path])) == {cells[2].key}
    assert failures == [
        Failure(cells[0], "the loss became nan"),
        Failure(cells[1], "ZeroDivisionError: a fault"),
    ]


@pytest.mark.slow
def test_processes_share_the_cells_and_the_cores(tmp_path):
    path, cells = tmp_path / "r.jsonl", doubles.grid("quick", range(2))
    results, failures = run_grid(cells, doubles.run_with_threads, path, jobs=2)
    assert not failures and {r.key for r in results} == {c.key for c in cells} == set(read([path]))
    assert os.getpid() not in {r.extra["pid"] for r in results}
    assert {r.extra["threads"] for r in results} == {max(1, (os.cpu_count() or 1) // 2)}


@pytest.fixture
def papers(monkeypatch):
    def use(**items):
        monkeypatch.setitem(frame.PAPERS, "lila", Paper("A paper", items))

    use(one=doubles.item(), two=doubles.item())
    return use


def test_a_second_run_does_only_what_is_missing(papers, tmp_path):
    request = Request("lila", "one", seeds=1, out=tmp_path)
    assert reproduce(request).ran == 2
    again = reproduce(replace(request, seeds=3))
    assert (again.cells, again.ran) == (6, 4)
    assert reproduce(replace(request, seeds=3)).ran == 0


def test_an_interrupted_grid_keeps_what_was_done(papers, tmp_path):
    def interrupted(cell, device):
        if cell.seed == 1:
            raise KeyboardInterrupt
        return doubles.run(cell, device)

    papers(one=doubles.item(interrupted))
    request = Request("lila", "one", out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        reproduce(request)
    papers(one=doubles.item())
    assert reproduce(request).ran == 4


def test_items_of_a_paper_share_the_cells_they_have_in_common(papers, tmp_path):
    reproduce(Request("lila", "one", out=tmp_path))
    found = reproduce(Request("lila", "two", out=tmp_path))
    assert found.ran == 0 and "row lila 0" in found.text and not found.lines.exists()


def test_the_table_has_seeds_together_and_a_section_for_each_scale(papers, tmp_path):
    for scale in ("small", "quick"):
        found = reproduce(Request("lila", "one", scale, 2, ("method=lila",), out=tmp_path))
    found = reproduce(Request("lila", "one", "quick", 2, out=tmp_path))
    quick, small = found.text.index("## Scale: quick"), found.text.index("## Scale: small")
    assert small < quick
    assert "row lila 0\nrow lila 1\nrow plain 0\nrow plain 1\n" in found.text[quick:]
    assert "plain" not in found.text[small:quick]
    assert "`augury reproduce lila one --scale quick --seeds 2`" in found.text
    assert "Seeds: 0, 1; 4 runs, 8 seconds" in found.text and "2 cores, 4 GB" in found.text
    assert found.table.read_text() == found.text
    assert {p.name for p in found.figures} == {"lila_one_small_a.svg", "lila_one_quick_a.svg"}
    assert found.figures[0].read_bytes() == b"<svg/>"


def test_results_of_other_settings_are_left_out_of_the_table(papers, tmp_path):
    append(tmp_path / "lila_one_small.jsonl", doubles.result(doubles.cell(seed=0, scale="small", rate=3)))
    found = reproduce(Request("lila", "one", seeds=1, out=tmp_path))
    assert found.ran == 2 and found.text.count("row lila 0") == 1


def test_where_every_cell_fails_the_first_reason_is_given(papers, tmp_path):
    def fails(cell, device):
        raise RunError("no such data")

    papers(one=doubles.item(fails))
    with pytest.raises(RunError, match="no such data"):
        reproduce(Request("lila", "one", out=tmp_path))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"paper": "lilla"}, "Did you mean 'lila'"),
        ({"item": "tabel1"}, "item of paper 'lila' must be one of"),
        ({"scale": "tiny"}, "scale must be one of"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"jobs": 0}, "jobs must be at least 1"),
    ],
    ids=str,
)
def test_a_request_that_does_not_fit_is_refused(given, says):
    with pytest.raises(InputError, match=says):
        Request(**{"paper": "lila", "item": "recovery", **given})


def test_quick_results_stay_out_of_the_documentation():
    assert Request("lila", "recovery", "quick").folder == frame.SCRATCH
    assert Request("lila", "recovery", "small").folder == frame.DOCS


def test_mean_and_standard_error_over_seeds():
    values = [0.91, 0.94, 0.96]
    mean, error = mean_se([*values, None])
    assert mean == pytest.approx(np.mean(values)) and error == pytest.approx(np.std(values, ddof=1) / 3**0.5)
    assert spread([0.91, 0.94, 0.96], 2, 100) == "93.67 ± 1.45"
    assert spread([0.5], 1) == "0.5" and spread([None]) == "-" and mean_se([]) is None


def test_a_table_in_markdown():
    assert table(["a", "b"], [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_groups_differ_in_their_seed_only():
    results = [doubles.result(c) for c in doubles.grid("quick", range(2))]
    groups = grouped(results, lambda cell: (cell.method,))
    assert {key: [r.cell.seed for r in group] for key, group in groups.items()} == {
        ("lila",): [0, 1],
        ("plain",): [0, 1],
    }
