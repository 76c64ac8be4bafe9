"""`augury reproduce`: every item of paper A at scale quick, as a user meets it."""

import json
import subprocess
import sys

import pytest

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
NEW = {"recovery": 6, "table1": 0, "table2": 2, "figure1": 2, "figure2": 0, "figure3": 3, "ablation": 9}
"""Cells that no earlier item of this list has run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


def test_the_list_below_is_complete():
    assert list(SHOWS) == list(NEW) == list(PAPERS["lila"].items)


@pytest.mark.parametrize("item", SHOWS)
def test_every_item_runs_and_writes_ours_beside_the_papers(item, folder, augury):
    code, out, err = augury(
        "reproduce", "lila", item, "--scale", "quick", "--seeds", 1, "--out", folder, "--json"
    )
    found = json.loads(out)
    assert code == 0 and found["failed"] == [], err
    assert found["ran"] == len(err.splitlines()) <= sum(NEW.values())
    text = (folder / f"lila_{item}.md").read_text()
    for part in SHOWS[item]:
        assert part in text
    for figure in found["figures"]:
        assert (folder / figure).read_bytes().startswith(b"<svg")
    assert bool(found["figures"]) == item.startswith("figure")


def test_filters_and_the_table_for_a_person(tmp_path, augury):
    arguments = [
        "reproduce",
        "lila",
        "figure1",
        "--scale",
        "quick",
        "--only",
        "method=plain",
        "--only",
        "seed=0",
    ]
    code, out, err = augury(*arguments, "--out", tmp_path, "--quiet")
    assert code == 0 and err == "" and "plain" in out and "Written to" in out
    assert len((tmp_path / "lila_figure1_quick.jsonl").read_text().splitlines()) == 1


def test_a_wrong_word_is_answered_without_torch():
    code = "import sys; from augury.cli.main import main; sys.argv = ['augury', 'reproduce', *sys.argv[1:]]\n"
    code += "try:\n    main()\nfinally:\n    print('torch' in sys.modules)"
    for arguments, says in (
        (["lila", "tabel1"], "Did you mean 'table1'"),
        (["--help"], "augury reproduce lila"),
    ):
        process = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert says in process.stdout + process.stderr and process.stdout.endswith("False\n")
