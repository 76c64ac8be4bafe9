"""The comparison of policies: one operation per view, equal settings, a search that is counted, results that stay."""

import pytest
import torch

import papers_doubles as doubles
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.transforms.affine2d import Affine2d
from papers.learning import data_of
from papers.policies import policies
from papers.policies.policies import POLICIES, grid, run, settings
from papers.policies.table import write
from papers.policies.trivial import OneOf, trivial, wide


def one(method, seed=0):
    (cell,) = [cell for cell in grid("quick", [seed]) if cell.method == method]
    return cell


def test_every_view_gets_one_operation_or_none():
    x = torch.rand(3, 1, 12, 12, generator=generator(0))
    policy = trivial((1, 12, 12))
    eps = policy.noise(3, 200, generator(1))
    views = policy.act(x, eps)
    n = len(policy.parts) + 1
    which = ((eps[..., 0] + 1) / 2 * n).long()
    assert set(which.flatten().tolist()) == set(range(n))
    for j, part in enumerate(policy.parts):
        for b, s in torch.nonzero(which == j)[:5].tolist():
            assert torch.allclose(views[b, s], part.act(x[b : b + 1], eps[b, s, 1].reshape(1, 1, 1))[0, 0])
    b, s = torch.nonzero(which == n - 1, as_tuple=True)
    assert torch.equal(views[b, s], x[b])


def test_operations_are_equally_likely_and_saturation_needs_colours():
    policy = OneOf([Affine2d((8, 8), "translate_x"), Affine2d((8, 8), "rotation")])
    policy.set_widths({"translate_x": 4.0, "rotation": 30.0})
    x = torch.rand(1, 1, 8, 8, generator=generator(0))
    same = (policy(x, 3000, generator(1)) == x[:, None]).flatten(2).all(2).double().mean()
    assert abs(float(same) - 1 / 3) < 0.03
    assert "saturation" in trivial((3, 8, 8)).names and "saturation" not in trivial((1, 8, 8)).names


@pytest.mark.parametrize("scale", policies.PLACES)
def test_all_rows_share_the_network_the_images_and_the_training(scale):
    cells = grid(scale, [0])
    for place in policies.PLACES[scale]:
        here = [c for c in cells if (c.data, c.variant, c.subset) == (place.data, place.variant, place.images)]
        assert len(here) == len(POLICIES) - len(place.without)
        assert len({(c.model, c.test_images) for c in here}) == 1
        assert len({(c.settings.get("epochs"), c.settings.get("steps"), c.settings["batch"]) for c in here}) == 1


def test_settings_and_candidates_of_the_search():
    (place,) = policies.PLACES["quick"]
    assert "eta_steps" in settings(place, POLICIES["lila"])
    assert "eta_steps" not in settings(place, POLICIES["fixed"])
    digits, outlines = data_of(one("plain")), doubles_of_outlines()
    tried = policies.candidates(digits)
    assert tried[0] == {} and len(tried) == 8 == len({tuple(c.items()) for c in tried})
    assert {"rotation": 90.0, "translate_x": 3.5, "translate_y": 3.5} in tried
    assert {"circular_shift": 32.0, "mirror": 50.0} in policies.candidates(outlines)
    assert policies.fixed(outlines) == {"time_shift": 3.2, "amplitude": 1.1}
    assert trivial((1, 64)).names == ("time_shift", "time_stretch", "amplitude")


def doubles_of_outlines():
    x = torch.zeros(4, 1, 64)
    return Dataset(x, torch.tensor([0, 1, 0, 1]), x, torch.zeros(4).long(), kind="signal", closed=True)


def test_trivial_augment_mirrors_and_crops_first():
    policy = wide((3, 16, 16))
    assert policy.names[:3] == ("flip_x", "translate_x", "translate_y") and "saturation" in policy.names
    assert policy(torch.rand(2, 3, 16, 16, generator=generator(0)), 5, generator(1)).shape == (2, 5, 3, 16, 16)


@pytest.mark.usefixtures("short_runs")
def test_the_exported_policy_takes_the_run_of_the_evidence():
    lila, exported = run(one("lila")), run(one("augmented/exported"))
    widths = {name: w.value for name, w in exported.invariance.widths.items()}
    assert widths == pytest.approx({name: w.value for name, w in lila.invariance.widths.items()})
    assert exported.extra["trainings"] == 2 and exported.extra["cpu_seconds"] > lila.extra["cpu_seconds"]


def test_a_search_counts_all_its_trainings():
    found, single = run(one("augmented/grid")), run(one("plain"))
    assert single.extra["trainings"] == 1 and found.extra["cpu_seconds"] > single.extra["cpu_seconds"] > 0
    assert found.extra["trainings"] == 9 == len(found.extra["tried"]) + 1
    best = max(entry["accuracy"] for entry in found.extra["tried"])
    first = next(entry for entry in found.extra["tried"] if entry["accuracy"] == best)
    assert found.extra["chosen"] == first["widths"]
    assert found.N == 40


def test_a_search_is_judged_on_training_images_that_it_did_not_train_on():
    cell = one("augmented/grid")
    data = data_of(cell)
    part = policies.validation_split(data, 0)
    assert 6 <= len(part.x_test) <= 10
    both = torch.cat([part.x_train, part.x_test]).flatten(1)
    assert sorted(both.sum(1).tolist()) == sorted(data.x_train.flatten(1).sum(1).tolist())


def test_the_fixed_policy_stays_as_it_was_given():
    widths = run(one("augmented/fixed")).invariance.widths
    assert {name: round(w.value, 4) for name, w in widths.items()} == policies.fixed(data_of(one("plain")))


def test_the_table_shows_means_trainings_and_widths():
    results = [
        doubles.result(one("lila", seed), 0.5 + seed / 10, trainings=1, cpu_seconds=10.0 + seed) for seed in (0, 1)
    ]
    row = "| lila | widths by the evidence | 55.0 ± 5.0 | 1 | 10 ± 0 | - | rotation 170 deg; rotation 171 deg |"
    text = write(results)
    assert row in text and "2 trainings, 21 CPU seconds" in text


def test_on_the_command_line(tmp_path, augury):
    words = ["policies", "--scale", "quick", "--seeds", "1", "--only", "method=plain", "-q", "--json", "--out"]
    code, out, _ = augury("bench", *words, tmp_path)
    assert code == 0 and '"ran": 1' in out and '"failed": []' in out
    text = (tmp_path / "policies_table.md").read_text()
    assert "| none | no augmentation |" in text
    assert "`python -m papers policies table --scale quick --seeds 1`" in text
