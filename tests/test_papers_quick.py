"""`python -m papers`: every item of paper A at scale quick, as a user meets it, and the commands that lead there."""

import subprocess
import sys

import pytest

import papers_doubles as doubles
from papers.catalog import PAPERS

SHOWS = {
    "recovery": ["| cnn | rotated | lila |", "(planted 180)", "0 of 1", "What LILA gains"],
    "table1": ["98.83 ± 0.07", "| mnist5k | cnn | lila | ours |"],
    "table2": ["| lila/ef |", "91.64 ± 0.26"],
    "figure1": ["| rotated | lila |", "(planted 180)"],
    "figure2": ["(3.14)", "| original |"],
    "figure3": ["| rotated | augerino |", "| 20 | 40 |"],
    "ablation": ["| toy | toy_mlp | rotated | full | ef |"],
}
CELLS = 22
"""Of all items together: they share what they can."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("item", PAPERS["lila"].items)
def test_every_item_runs_and_writes_ours_beside_the_papers(item, folder, capsys, short_walks):
    found = doubles.quick(capsys, folder, "lila", item, SHOWS[item], figures=item.startswith("figure"))
    assert found["ran"] <= CELLS


def test_filters_and_the_table_for_a_person(tmp_path, augury):
    words = ["reproduce", "lila", "figure1", "--scale", "quick", "--only", "method=plain", "--only", "seed=0"]
    code, out, err = augury(*words, "--out", tmp_path, "--quiet")
    assert code == 0 and err == "" and "plain" in out and "Written to" in out
    assert len((tmp_path / "lila_figure1_quick.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("reproduce lila tabel1", "Did you mean 'table1'"),
        ("reproduce --help", "python -m papers lila"),
        ("--help", "Reproduce a table"),
    ],
)
def test_help_and_a_wrong_word_are_answered_without_torch(words, says):
    code = "import sys; from augury.cli.main import main\ntry:\n    main()\n"
    code += (
        "finally:\n    print('torch' in sys.modules, ('papers' in sys.modules) <= ('reproduce' in sys.argv))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=False
    )
    assert says in process.stdout + process.stderr and process.stdout.endswith("False True\n")


def test_without_a_clone_one_line_says_where_to_get_it(monkeypatch, augury):
    monkeypatch.setitem(sys.modules, "papers.__main__", None)
    for command in (["reproduce", "lila", "table1"], ["bench"], ["bench", "policies", "--help"]):
        code, _, err = augury(*command)
        assert code == 2 and "Clone it" in err and len(err.splitlines()) == 1
