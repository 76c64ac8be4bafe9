"""`python -m papers`: items of every paper at scale quick, as a user meets them, and the commands that lead there."""

import json
import subprocess
import sys

import pytest

import papers_doubles as doubles
from papers.catalog import PAPERS
from papers.invariant_weights.filters import unpack

SHOWS = {
    "lila": {
        "recovery": ["| cnn | rotated | lila |", "(planted 180)", "0 of 1", "the planted invariance"],
        "table1": ["98.83 ± 0.07", "| mnist5k | cnn | lila | ours |"],
        "table2": ["| lila/ef |", "91.64 ± 0.26"],
        "figure1": ["| rotated | lila |", "(planted 180)"],
        "figure2": ["(3.14)", "| original |"],
        "figure3": ["| rotated | augerino |", "| 20 | 40 |"],
        "ablation": ["| toy | toy_mlp | rotated | full | ef |"],
    },
    "genuine": {
        "table": ["| C4 (R^2_4) | WT | ours |", "98.6 ± 5.4", "SI above 0.9999 | 1 of 1 | 1 of 1 |"],
        "saliency": ["| C4 | WT | 1.00 ± 0.00 |"],
        "drift": ["| T3 | DA | occluded |", "| C4 | WT | mnist5k: test | 0.000 |"],
        "spectrum": ["| T3 | IR 2 |", "sigma_max(W_1), last"],
        "proposition": ["sigma_max(W) grew in 0 of 2 runs", "| flip_x | pair | flow |", "of W(0) exp(-2 M t)"],
        "verdicts": ["| mnist5k | C4 | WT |", "| SI | 0.95 (ours) |"],
    },
    "hyperinvariances": {
        "table1": ["should be [1, 1]", "rotation N = 4", "random conv"],
        "table2": ["stand in for STL-10", "| cifar | hyper | [", "84.0", "one extractor is at most a point"],
        "table3": ["| digit | 4 | mtl |", "2XB/sqrt(n)"],
        "figure1": ["| left | rotation, color | rotation |", "| middle |", "random pairs", "log_evidence"],
    },
    "invariant_weights": {
        "figure1": ["| rotated | fixed 45 deg | 45.0 (planted 180) |", "| partially_rotated | learned from 5 deg |"],
        "table4": ["| fixed 175 deg | ours |", "-0.43 | -0.42 | -0.26", "full rotation is learned"],
        "table1": ["| learned from 5 deg | ours |", "best fixed rotation"],
        "figure2": ["| learned from 5 deg |"],
        "figure5": ["| maximum likelihood |", "Reaches 160 degrees: variational bound: 0 of 1 runs"],
        "table2": ["| SGPR | ours |", "91.19", "| rotated | + affine | **", "the affine model is best"],
        "table7": ["| no invariance | ours |", "| ELBO, scaled |"],
        "figure4": ["Pictures of units", "| rotated | + affine |"],
        "figure3": ["degrees after 2 epochs (the paper: 179; planted 180)"],
    },
}
CELLS = {"lila": 22, "genuine": 17, "hyperinvariances": 40, "invariant_weights": 99}
"""Of all items of a paper together: they share what they can."""
DRAWN = {"saliency", "drift", "spectrum", "proposition"} | {
    f"invariant_weights {name}" for name in ("table1", "table4")
}
"""Those with figures beside the figures."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize(("paper", "item"), [(paper, item) for paper, items in SHOWS.items() for item in items])
def test_an_item_runs_and_writes_ours_beside_the_papers(paper, item, folder, capsys, short_runs):
    figures = item.startswith("figure") or bool({item, f"{paper} {item}"} & DRAWN)
    found = doubles.quick(capsys, folder, paper, item, SHOWS[paper][item], figures)
    assert found["ran"] <= CELLS[paper]


def test_every_item_is_run_here_but_those_of_paper_b_that_repeat_another():
    for paper in ("lila", "genuine", "hyperinvariances"):
        assert set(SHOWS[paper]) == set(PAPERS[paper].items)


def test_items_share_what_they_can(folder, capsys):
    doubles.quick(capsys, folder, "invariant_weights", "table1", figures=True)
    assert doubles.quick(capsys, folder, "invariant_weights", "figure2", figures=True)["ran"] == 0


def test_figure_3_of_paper_b_shows_its_filters_over_training(folder, capsys):
    doubles.quick(capsys, folder, "invariant_weights", "figure3", figures=True)
    (line,) = (folder / "invariant_weights_figure3_quick.jsonl").read_text().splitlines()
    extra = json.loads(line)["extra"]
    shapes = {name: unpack(packed).shape for name, packed in extra["banks"].items()}
    assert extra["bank_epochs"] == [0, 1, 2]
    assert shapes == {"sampled": (3, 2, 7, 1, 28, 28), "equal": (3, 2, 7, 1, 28, 28)}
    text = (folder / "invariant_weights_figure3_quick_equal.svg").read_text()
    assert ">epoch 2</text>" in text and ">b7</text>" in text


def test_filters_and_the_table_for_a_person(tmp_path, augury):
    words = ["reproduce", "lila", "figure1", "--scale", "quick", "--only", "method=plain", "--only", "seed=0"]
    code, out, err = augury(*words, "--out", tmp_path, "--quiet")
    assert code == 0 and err == "" and "plain" in out and "Written to" in out
    assert len((tmp_path / "lila_figure1_quick.jsonl").read_text().splitlines()) == 1


WITHOUT = {"reproduce lila tabel1": "'table1'", "reproduce --help": "papers lila", "--help": "Reproduce a table"}


@pytest.mark.parametrize("words", WITHOUT)
def test_help_and_a_wrong_word_are_answered_without_torch(words):
    code = "import sys; from augury.cli.main import main\ntry:\n    main()\nfinally:\n"
    code += "    print('torch' in sys.modules, ('papers' in sys.modules) <= ('reproduce' in sys.argv))"
    call = [sys.executable, "-c", code, *words.split()]
    process = subprocess.run(call, capture_output=True, text=True, check=False)
    assert WITHOUT[words] in process.stdout + process.stderr and process.stdout.endswith("False True\n")


def test_without_a_clone_one_line_says_where_to_get_it(monkeypatch, augury):
    monkeypatch.setitem(sys.modules, "papers.__main__", None)
    for command in (["reproduce", "lila", "table1"], ["bench"], ["bench", "policies", "--help"]):
        code, _, err = augury(*command)
        assert code == 2 and "Clone it" in err and len(err.splitlines()) == 1
