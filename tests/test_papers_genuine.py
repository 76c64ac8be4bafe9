"""Paper D's items: statements that a seed can refute, verdicts under other limits, saliency maps."""

import re

import numpy as np
import pytest
import torch

import papers_doubles as doubles
from augury.config.audit import LIMITS
from augury.core.rng import generator
from augury.models.small import MLP
from augury.models.weight_tied import tie
from augury.records.results import Audit, Measure, Scores
from augury.transforms.finite_groups import CyclicRotation
from papers.genuine.claims import claims
from papers.genuine.runs import GROUPS, LEVELS, METHODS, grid, saliency_maps
from papers.genuine.table import PUBLISHED
from papers.genuine.verdicts import EXPECTED, rejudged
from papers.genuine.verdicts import grid as verdict_grid
from papers.results import Cell


def scores(LI=0.0, relative=0.0, SI=1.0, agreement=1.0):
    return Scores(Measure(LI, 0.0), relative, Measure(0.0, 0.0), Measure(SI, 0.0), Measure(agreement, 0.0), 10)


def result(method, accuracy, seed=0, sigma=10.0, verdict="genuine", fashion=None, **given):
    of = scores(**given)
    audit = Audit(
        "C4", of.LI, of.LI_relative, of.DI, of.SI, of.agreement, scores(), sigma, verdict, 10,
        sigma_max_relative=sigma / 5, drift={"fashion_mnist": fashion or of},
    )  # fmt: skip
    cell = Cell("mnist", "original", "mlp5", f"{method}/C4", seed, {"generators": ["C4"], "epochs": 20})
    return doubles.result(cell, accuracy, audit=audit.to_json())


def trio(seed=0, **changed):
    """Runs that agree with all that the paper says, but for what is changed of DA's."""
    kept = scores(agreement=changed.pop("kept", 0.5))
    augmented = {"LI": 20.0, "relative": 0.1, "SI": 0.5, "sigma": 20.0, "fashion": kept, **changed}
    return [
        result("weight_tied", 0.95, seed),
        result("data_augmented", augmented.pop("accuracy", 0.94), seed, **augmented),
        result("regularised", 0.88, seed, LI=0.02, relative=0.001, SI=0.96, sigma=8.0),
    ]


def counts(results):
    lines = [line.strip("| ").split(" | ") for line in claims(results).splitlines() if " of " in line]
    return {words: count for words, count in lines if re.fullmatch(r"\d of \d", count)}


class TestStatements:
    def test_runs_like_the_papers_agree_with_every_one(self):
        assert len(counts(trio())) == 12 and set(counts(trio()).values()) == {"1 of 1"}

    @pytest.mark.parametrize(
        ("changed", "refuted"),
        [
            ({"accuracy": 0.9}, ["DA is nearer to WT"]),
            ({"accuracy": 0.8}, ["DA is nearer to WT", "IR has the lowest accuracy"]),
            ({"SI": 0.8}, ["DA has SI"]),
            ({"LI": 1.0}, ["DA has LI"]),
            ({"sigma": 9.0}, ["sigma_max(J) of IR is at most"]),
            ({"sigma": 7.0}, ["sigma_max(J) of IR is at most", "sigma_max(J) / size of IR"]),
            ({"kept": 0.9}, ["DA keeps fewer"]),
            ({"kept": 1.0}, ["DA keeps fewer", "IR keeps more"]),
        ],
        ids=str,
    )
    def test_each_can_be_refuted(self, changed, refuted):
        against = [words for words, count in counts(trio(**changed)).items() if count == "0 of 1"]
        assert len(against) == len(refuted)
        assert all(any(part in words for words in against) for part in refuted)

    def test_what_WT_and_IR_must_be(self):
        _, da, _ = trio()
        IR = result("regularised", 0.88, LI=0.02, relative=0.02, SI=0.94, sigma=8.0)
        found = counts([result("weight_tied", 0.95, LI=1e-3), da, IR])
        against = [words for words, count in found.items() if count == "0 of 1"]
        assert [words[:12] for words in against] == ["WT is exact:", "IR has SI of", "IR has LI ne"]

    def test_seeds_are_counted_and_incomplete_ones_left_out(self):
        found = counts([*trio(0), *trio(1, SI=0.9), *trio(2)[:2]])
        assert found["IR has SI of 0.95 or more"] == "2 of 2"
        assert found["DA has SI at least 0.2 below IR's"] == "1 of 2"
        assert claims(trio()[:2]) == ""


class TestVerdicts:
    def test_other_limits_give_other_verdicts(self):
        there = scores(agreement=0.7, relative=0.3)
        run = result("data_augmented", 0.9, relative=0.2, agreement=0.9, SI=0.97, fashion=there)
        assert rejudged(run) == "only on the training distribution"
        assert rejudged(run, far=0.1) == rejudged(run, keep=0.95) == "sensitive"
        assert rejudged(run, far=0.4, keep=0.6) == "genuine"
        assert rejudged(run, far=0.4, keep=0.6, SI=0.99) == "only on the training distribution"

    def test_unchanged_limits_repeat_the_audit(self):
        assert rejudged(result("weight_tied", 0.9)) == "genuine" and LIMITS.SI == 0.95

    def test_every_method_of_the_grid_has_an_expectation_and_the_tables_runs_are_among_them(self):
        cells = verdict_grid("quick", [0])
        assert {cell.algorithm for cell in cells} == set(EXPECTED)
        assert {cell.key for cell in grid("quick", [0])} < {cell.key for cell in cells}


def test_the_printed_numbers_and_settings_are_those_of_the_paper():
    assert PUBLISHED["C4", "data_augmented"][1] == "98.6 ± 5.4"
    assert PUBLISHED["T3", "regularised"][0] == "93.1 ± 0.1"
    assert PUBLISHED["T3", "weight_tied"][3] == "1.00 ± 0.0" and len(PUBLISHED) == 6
    (cell, *_), all_cells = grid("paper", [0]), grid("paper", range(5))
    assert cell.settings == {"epochs": 300, "generators": ["C4"]}
    assert cell.subset is None and cell.data == "mnist"
    assert len(all_cells) == 5 * len(GROUPS) * len(METHODS)


def test_maps_of_a_tied_network_are_alike_and_come_back_to_the_frame_of_the_image():
    x = torch.rand(2, 1, 8, 8, generator=generator(0))
    net = MLP([64, 16, 16, 3], generator(1), "relu")
    group = CyclicRotation(4)
    for image in saliency_maps(tie(net, group), x, group):
        maps = np.array(image["maps"])
        assert image["SI"] == [1.0] * 4 and np.abs(maps).max() == LEVELS
        assert np.abs(maps - maps[0]).max() <= 1  # rounding
        assert (np.array(image["views"][1]) == np.rot90(image["views"][0])).all()
    untied = saliency_maps(MLP([64, 16, 16, 3], generator(1), "relu"), x, group)
    assert untied[0]["SI"][0] == 1.0 and max(untied[0]["SI"][1:]) < 0.9
