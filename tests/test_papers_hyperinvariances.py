"""Paper C's grids, tables and curves."""

import json

import pytest

from augury.cli.main import main
from augury.config.hyper import AmortizeConfig
from augury.data.named import NAMED
from augury.models.networks import ENCODERS
from augury.records.results import Adaptation, Bound
from papers.catalog import PAPERS
from papers.cell import Cell
from papers.hyperinvariances.correlation import ranks, spearman
from papers.hyperinvariances.extractors import OURS, per_class, place
from papers.hyperinvariances.figure1 import turns
from papers.hyperinvariances.published import RIGHT, TABLES_1_AND_3
from papers.hyperinvariances.run import result
from papers.hyperinvariances.settings import multitask
from papers.hyperinvariances.table1 import METHODS, claims
from papers.hyperinvariances.table2 import claims as claims2
from papers.item import SCALES

ITEMS = PAPERS["hyperinvariances"].items
SHOWS = {
    "table1": ["should be [1, 1]", "evidence, rotation: rounds to [0, 1] in 0 of 0", "random conv"],
    "table2": [
        "stand in for STL-10",
        "| cifar | hyper | [",
        "84.0",
        "- faces, as many views of each kind: hyper",
    ],
    "table3": ["| digit | 4 | mtl |", "2XB/sqrt(n)"],
    "figure1": ["| left | rotation, color | rotation |", "| middle |", "random pairs", "log_evidence"],
}
NEW = {"table1": 16, "table2": 16, "table3": 0, "figure1": 6}
"""Cells that no earlier item of this list has run."""


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("item", ITEMS)
def test_every_cell_names_what_exists_and_has_settings_that_pre_training_takes(item, scale):
    cells = ITEMS[item].grid(scale, range(2))
    assert cells and len({c.key for c in cells}) == len(cells) and {c.seed for c in cells} == {0, 1}
    for c in cells:
        assert c.data in NAMED and c.model in ENCODERS
        pretrain = dict(c.settings["pretrain"])
        method = pretrain.pop("method", "contrastive")
        AmortizeConfig.for_method(method, **{k: v for k, v in pretrain.items() if k not in OURS})
        assert Cell.from_json(json.loads(json.dumps(c.to_json()))).key == c.key


def test_table_3_shows_runs_of_table_1_only():
    keys = {c.key for c in ITEMS["table1"].grid("small", [0])}
    assert {c.key for c in ITEMS["table3"].grid("small", [0])} < keys
    assert len(keys) == len(METHODS) * 2 * 5


def adaptation(i, score) -> Adaptation:
    names = dict(zip(("rotation", "color"), i, strict=True))
    return Adaptation(
        names, score, Bound.of(0.1, 1.0, 1.0, 10, 4, 0.05), 1.0, log_evidence=-1.0, train_score=0.9
    )


def test_claims_count_the_descriptors_that_round_right_and_the_sizes_that_win():
    cells = [c for c in ITEMS["table1"].grid("small", [0, 1]) if c.variant == "rotation"]
    results = []
    for cell in cells:
        n, seed = cell.settings["per_class"], cell.seed
        i, score = ([0.1, 0.9], 0.6) if n >= 100 or seed == 0 else ([0.9, 0.9], 0.3)
        if cell.method == "mtl":
            results.append(result(cell, adaptation([0.5, 0.5], 0.5)))
        elif cell.method == "evidence":
            results.append(result(cell, adaptation(i, score), binary=score))
    text = claims(results)
    assert "evidence, rotation: rounds to [0, 1] in 5 of 6 runs with N >= 50" in text
    assert "above the multi-task baseline at 2 of 5 N" in text
    table = ITEMS["table1"].write(results)
    assert "| 200 | [10, 90] | 60.0 ± 0.0 |" in table and "| 200, paper | " in table


def test_claims_of_table_2_name_the_best_rival_of_equal_effort():
    results = []
    for cell in ITEMS["table2"].grid("small", [0]):
        score = {"hyper": 0.5, "simclr": 0.4, "ventral": 0.52, "dorsal": 0.1}[cell.algorithm]
        score += 0.2 * cell.method.endswith("/long") + 0.1 * cell.method.endswith("/equal")
        results.append(result(cell, adaptation([0.5, 0.5], score), pretraining=1.0, binary=score))
    text = claims2(results)
    assert (
        "- cifar, as many views of each kind: hyper 50.0; the best of simclr, ventral, dorsal: ventral 52.0."
        in text
    )
    assert (
        "- faces, as many views of each kind, three times as long: hyper/long 70.0; the best of simclr/equal"
        in text
    )
    assert text.count("as many views in all: hyper 50.0;") == 2 and text.count("ventral/equal 62.0.") == 4
    short = claims2([r for r in results if r.cell.method in ("hyper", "dorsal/equal")])
    assert short.splitlines() == [
        f"- {task}, as many views in all: hyper 50.0; the best of dorsal/equal: dorsal/equal 20.0."
        for task in ("cifar", "faces")
    ]


def test_the_papers_numbers():
    assert TABLES_1_AND_3["digit", 200].continuous == 54.2 and TABLES_1_AND_3["rotation", 20].i == (6, 88)
    assert len(TABLES_1_AND_3) == 10 and RIGHT == {"digit": (1, 1), "rotation": (0, 1)}


def test_rank_correlation():
    assert spearman([1, 2, 3, 4], [1, 8, 27, 64]) == 1 and spearman([1, 2, 3], [3.0, 2.0, 1.0]) == -1
    assert ranks([5, 1, 5, 2]) == [3.5, 1, 3.5, 2]
    assert abs(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) - 0.8) < 1e-12
    assert spearman([1, 2], [3, 3]) == 0
    assert turns([1, 2, 3, 2, 2, 1]) == 1 and turns([0, 1, 2]) == 0


def test_few_images_of_every_class_each_set_within_the_next():
    from augury.data.load import load

    data = load("mnist5k", subset=600)
    few, more = per_class(data, 3, 0), per_class(data, 7, 0)
    assert [int((few.y_train == c).sum()) for c in range(10)] == [3] * 10
    rows = {tuple(x.flatten().tolist()) for x in more.x_train}
    assert all(tuple(x.flatten().tolist()) in rows for x in few.x_train) and len(more.x_train) == 70


def test_extractors_of_other_settings_or_seeds_stand_elsewhere():
    one, other = multitask("small"), multitask("small", invariance=0.0)
    assert len({place(one, 0), place(one, 1), place(other, 0)}) == 3
    same = {**one, "invariance": AmortizeConfig.for_method("multitask").invariance}
    assert place(one, 0) == place(same, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("item", SHOWS)
def test_every_item_runs_and_writes_ours_beside_the_papers(item, folder, monkeypatch, capsys):
    arguments = [
        "reproduce",
        "hyperinvariances",
        item,
        "--scale",
        "quick",
        "--seeds",
        "1",
        "--out",
        str(folder),
    ]
    monkeypatch.setattr("sys.argv", ["augury", *arguments, "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert not end.value.code and found["failed"] == [] and found["ran"] <= sum(NEW.values()), captured.err
    text = (folder / f"hyperinvariances_{item}.md").read_text()
    for part in SHOWS[item]:
        assert part in text
    assert bool(found["figures"]) == (item == "figure1")
