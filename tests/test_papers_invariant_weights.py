"""Paper B's grids, tables, claims and filter banks."""

import json

import numpy as np
import pytest
import torch

import papers_doubles as doubles
from augury.config.learn import LearnConfig
from augury.core.rng import generator
from augury.models.shallow import Relu, Rff
from augury.records.results import Invariance, Width
from papers.catalog import SCALES
from papers.figures import colours
from papers.invariant_weights.budgets import rotations, row_of, transformations
from papers.invariant_weights.filters import LEVELS, pack, pictures, unpack
from papers.invariant_weights.published import TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8
from papers.invariant_weights.rotations import AS_GOOD
from papers.invariant_weights.rotations import FOUND as CLAIMED
from papers.invariant_weights.tables import words
from papers.invariant_weights.training import drawn, parts
from papers.invariant_weights.transformations import affine_near, learned_helps, planted_helps
from papers.learning import data_of
from papers.results import Cell, Result

ITEMS = doubles.items_of("invariant_weights")


def config(cell):
    settings = {k: v for k, v in cell.settings.items() if k not in ("network", "generators")}
    return LearnConfig.for_method(cell.algorithm, **settings)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("item", ITEMS)
def test_every_cell_names_what_exists_and_has_settings_that_learn_takes(item, scale):
    def check(c):
        if c.algorithm == "sgpr":
            assert set(c.settings) <= {"inducing", "steps", "rate"}
        else:
            assert c.model in ("rff", "relu") and c.settings["network"]["units"] > 0 and config(c)

    doubles.check_cells(ITEMS[item].grid(scale, range(2)), check)


def test_the_paper_scale_has_the_papers_settings():
    cells = ITEMS["table4"].grid("paper", [0])
    found = config(cells[0])
    assert (found.samples, found.batch, found.rate, found.rate_end) == (32, 128, 1e-3, 0.0)
    assert (found.posterior, found.side, found.sampling) == ("adam", "weight", "independent")
    assert cells[0].settings["network"] == {"units": 1024} and cells[0].subset is None
    assert len(cells) == 3 * 10 and len(ITEMS["table2"].grid("paper", [0])) == 4 * 6
    priors = {
        (name, scale): {c.settings["network"]["prior"] for c in ITEMS[name].grid(scale, [0]) if c.model == "relu"}
        for name in ("table2", "table3", "table5", "table8")
        for scale in ("small", "paper")
    }
    assert all(found == ({0.1} if key == ("table3", "small") else {0.0}) for key, found in priors.items())
    toy = ITEMS["figure1"].grid("paper", [0])[0].settings["network"]
    assert toy == {"units": 1024, "sigma": 5.0}


def test_a_learned_first_layer_has_as_many_images_per_unit_as_in_the_paper():
    for name, epochs in {"table5": 25, "table8": 60}.items():
        cells = ITEMS[name].grid("small", [0])
        assert {c.subset / c.settings["network"]["units"] for c in cells} == {60_000 / 1024}
        assert {(c.settings["epochs"], c.settings["settle_window"]) for c in cells} == {(epochs, 0)}  # all as long


@pytest.mark.parametrize("scale", SCALES)
def test_models_that_are_compared_by_the_bound_share_one_prior_unless_asked_for_the_best_of_each(scale):
    held, best = (ITEMS[item].grid(scale, [0]) for item in ("table4", "table4_prior"))
    assert {c.settings["delta_steps"] for c in held} == {0}
    assert [c.settings | {"delta_steps": 0} for c in best] == [c.settings for c in held]
    assert not any("delta_steps" in c.settings for c in best)


SHARED = {"table1": "table4", "figure2": "table4", "table7": "table2", "figure4": "table2", "figure6": "table3"}


@pytest.mark.parametrize(("item", "whose"), SHARED.items())
def test_items_share_their_runs(item, whose):
    for scale in SCALES:
        keys = {c.key for c in ITEMS[whose].grid(scale, [0])}
        assert {c.key for c in ITEMS[item].grid(scale, [0])} <= keys
    shared = [c for c in ITEMS["figure5"].grid("small", [0]) if row_of(c) != "point"]
    assert {c.key for c in shared} <= {c.key for c in ITEMS["table1"].grid("small", [0])}


def test_a_cell_makes_its_network_and_its_transformation():
    toy, digits = ITEMS["figure1"].grid("quick", [0])[0], ITEMS["table2"].grid("quick", [0])[-1]
    net, transform = parts(toy, data_of(toy))
    assert isinstance(net, Rff) and (net.sigma, net.units) == (5.0, 24) and transform.names == ("rotation",)
    net, transform = parts(digits, data_of(digits))
    assert isinstance(net, Relu) and len(transform.names) == 6 and drawn(digits)


def test_the_published_numbers_are_those_of_the_paper():
    assert TABLE_4["from_5", "partially_rotated"] == (92.34, -0.42)
    assert TABLE_4["fixed_135", "original"] == (92.13, -0.36)
    assert TABLE_5["from_0", "rotated"] == (97.34, -0.07)
    assert TABLE_7["sgpr", "scaled"] == (72.10, None) and TABLE_7["affine", "original"] == (98.93, -0.02)
    assert TABLE_6["translation", "translated"] == (87.81, -0.64)
    assert TABLE_3["scale", "scaled"] == (49.28, None)
    assert TABLE_8["rotation", "translated+scaled"] == (85.42, -0.27)
    tables = (TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8)
    assert [len(t) for t in tables] == [20, 30, 30, 20, 24, 20]


def result(cell: Cell, accuracy=0.5, bound=-1.0, **widths) -> Result:
    planted = {"rotated": 180.0, "partially_rotated": 90.0}.get(cell.variant)
    made = {name: Width(value, "deg", planted=planted) for name, value in widths.items()}
    invariance = Invariance(made, cell.method, cell.model, "MNIST, x", accuracy, log_evidence=10 * bound, seconds=1.0)
    return Result(cell.key, cell, invariance, 1, 10, {"rotation": [20.0, 30.0]}, doubles.MACHINE, {})


FOUND = {"rotated": 170.0, "partially_rotated": 90.0, "original": 50.0}


def learned(found=FOUND, start=5, seed=0, bound=-0.5) -> list[Result]:
    cells = rotations("small", [seed], "rff", list(found), (), [start])
    return [result(c, bound=bound, rotation=found[c.variant]) for c in cells]


class TestRotationClaims:
    def answers(self, results):
        return [list(claim.check(results).values()) for claim in CLAIMED]

    def test_low_starts_must_find_what_was_planted(self):
        wide = {"rotated": 150.0, "partially_rotated": 178.0, "original": 100.0}
        assert self.answers([*learned(), *learned(wide, start=175)]) == [[True]] * 3

    @pytest.mark.parametrize(
        ("change", "refuted"),
        [
            ({"rotated": 159.0}, 0),
            ({"partially_rotated": 116.0}, 1),
            ({"partially_rotated": 64.0}, 1),
            ({"original": 71.0}, 2),
        ],
        ids=str,
    )
    def test_each_can_be_refuted(self, change, refuted):
        assert self.answers(learned(FOUND | change)) == [[k != refuted] for k in range(3)]

    def test_the_bound_is_compared_with_that_of_the_best_fixed_width(self):
        fixed = [
            result(c, bound={"fixed_45": -0.6, "fixed_90": -0.8}[row_of(c)], rotation=1.0)
            for c in rotations("small", [0], "rff", ["partially_rotated", "original"], (45, 90), ())
        ]
        check = AS_GOOD[0].check
        assert check([*learned(), *fixed]) == {"partially_rotated": True, "original": True}
        assert not any(check([*learned(bound=-0.7), *fixed]).values()) and check(fixed) == {}


def test_the_table_has_ours_above_the_papers():
    text = ITEMS["table4"].write(learned())
    assert "| learned from 5 deg | ours | 50.00 | 50.00 | 50.00 | -0.500 | -0.500 | -0.500 |" in text
    assert "|  | paper | 91.72 | 92.34 | 96.40 | -0.43 | -0.42 | -0.26 |" in text
    assert "| learned from 5 deg | 170.0 | 90.0 | 50.0 |" in text and "10 images of MNIST, 256 units" in text
    assert words("fixed_45") == "fixed 45 deg" and words("affine") == "+ affine"


def test_trajectories_start_where_the_width_did_and_show_the_truth():
    axes = ITEMS["figure2"].draw(learned())["trajectories"].axes
    dashed = [[line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"] for ax in axes]
    assert dashed == [[180.0], [90.0], []]
    (ax,) = ITEMS["figure2"].draw(learned({"original": 50.0}, start=45))["trajectories"].axes
    assert [list(line.get_ydata()) for line in ax.lines] == [[45.0, 20.0, 30.0]]
    assert ITEMS["figure2"].draw([]) == {}


def test_which_transformation_wins():
    accuracy = {"none": 0.9, "rotation": 0.95, "affine": 0.945, "scale": 0.8}
    cells = transformations("small", [0], "relu", ["rotated", "scaled"], list(accuracy)[1:])
    results = [result(c, accuracy[row_of(c)] - (c.variant == "scaled") * (row_of(c) == "affine") * 0.01) for c in cells]
    assert affine_near(results) == {"rotated": True, "scaled": False}
    assert planted_helps(results) == {"rotation on rotated": True, "scale on scaled": False}
    assert learned_helps(results) == {"rotated, over none": True, "scaled, over none": True}
    assert affine_near([r for r in results if row_of(r.cell) != "affine"]) == {}


class TestBanks:
    def test_they_come_back_to_within_a_level(self):
        bank = torch.randn(2, 3, 4, 1, 6, 6, generator=generator(0))
        bank[0] *= 5
        back = unpack(json.loads(json.dumps(pack(bank))))
        scale = bank.abs().amax((2, 3, 4, 5), keepdim=True)
        assert back.shape == bank.shape and np.abs(back).max(axis=(2, 3, 4, 5)).tolist() == [[LEVELS] * 3] * 2
        assert np.abs(back / LEVELS - (bank / scale).numpy()).max() <= 0.5 / LEVELS + 1e-6

    def test_three_channels_are_colours_and_others_are_summed(self):
        copies = np.zeros((1, 3, 2, 2), np.int8)
        copies[0, 0, 0, 1], copies[0, 2, 1, 0] = LEVELS, -LEVELS
        (picture,) = pictures(copies)
        assert picture[0, 1].tolist() == [1.0, 0.5, 0.5] and picture[1, 0].tolist() == [0.5, 0.5, 0.0]
        assert np.array_equal(pictures(np.ones((1, 2, 3, 3), np.int8))[0], colours(np.full((3, 3), 2), LEVELS))

    def test_only_what_a_figure_shows_is_kept(self):
        cells = [c for item in ITEMS.values() for c in item.grid("small", [0, 1])]
        kept = {(row_of(c), c.variant) for c in cells if drawn(c)}
        assert {row for row, _ in kept} == {"grid", "affine", "rotation", "translation", "scale"}
        assert ("rotation", "scaled") not in kept and not any(drawn(c) for c in cells if c.seed or c.model == "rff")
