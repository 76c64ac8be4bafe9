"""Paper A's grids, thresholds and tables."""

import math

import pytest
import torch

import papers_doubles as doubles
from augury.config.learn import LearnConfig
from augury.core.rng import generator
from augury.methods.registry import METHODS
from augury.models.networks import NETWORKS
from papers.catalog import SCALES
from papers.claims import ahead
from papers.lila.figure2 import to_eta
from papers.lila.predictive import predictive
from papers.lila.published import TABLE_1, TABLE_2, printed
from papers.lila.recovery import RECOVERED
from papers.lila.recovery import grid as recovery_grid
from papers.lila.schedules import cell, settings
from papers.recipes import complete
from papers.results import ORIGINAL

ITEMS = doubles.items_of("lila")
ZERO = {"translate_x": 0.0, "translate_y": 0.0, "rotation": 0.0, "scale_x": 1.0, "scale_y": 1.0, "shear": 0.0}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("item", ITEMS)
def test_every_cell_names_what_exists_and_has_settings_that_learn_takes(item, scale):
    def check(c):
        assert c.model in NETWORKS and c.algorithm in METHODS
        LearnConfig.for_method(c.algorithm, **c.settings)

    cells = ITEMS[item].grid(scale, range(2))
    doubles.check_cells(cells, check)
    assert cells[0].seed == 0


def test_recovery_takes_complete_mnist_where_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("AUGURY_DATA", str(tmp_path))
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path))
    assert {(c.data, c.subset) for c in recovery_grid("small", [0])} == {("mnist5k", 4000)}
    (tmp_path / "mnist.npz").touch()
    cells = recovery_grid("small", range(3))
    assert {(c.data, c.subset, c.test_images) for c in cells} == {("mnist", 5000, 2000)}
    assert len(cells) == 3 * 2 * 5 * 3


@pytest.mark.parametrize("item", ["table1", "figure2"])
def test_items_share_their_runs_on_digits_with_recovery(item):
    keys = {c.key for c in recovery_grid("small", [0])}
    digits = [c for c in ITEMS[item].grid("small", [0]) if c.data.startswith("mnist") and (c.subset or 0) >= 4000]
    assert digits and {c.key for c in digits} <= keys


def test_all_methods_train_alike_and_the_baseline_sees_one_view():
    chosen = {m: settings("small", "mnist", "mlp", m, slow=True) for m in ("lila", "plain", "augerino")}
    assert len({(s["epochs"], s["batch"]) for s in chosen.values()}) == 1
    assert chosen["lila"]["samples"] == chosen["augerino"]["samples"] > chosen["plain"]["samples"] == 1
    assert "eta_steps" not in chosen["augerino"]
    for data in ("mnist", "cifar10"):
        short = {m: settings("small", data, "mlp", m) for m in chosen}
        assert len({(s["steps"], s["batch"]) for s in short.values()}) == 1 and short["lila"] == short["plain"]
        assert short["augerino"]["eta_rate"] == 0.005  # as the paper has it


def test_the_paper_scale_has_the_papers_settings():
    mnist, wide, augerino = (
        LearnConfig.for_method(method, **complete(cell("paper", data, ORIGINAL, model, method, 0, None)))
        for data, model, method in (
            ("mnist", "mlp", "lila"),
            ("cifar10", "wide_resnet_16_4", "lila"),
            ("mnist", "mlp", "augerino"),
        )
    )
    assert (mnist.epochs, mnist.batch, mnist.samples, mnist.prior) == (1000, 1000, 31, "scalar")
    assert (mnist.rate_end, mnist.eta_rate) == (1e-6, 0.05)
    assert (mnist.rate, mnist.delta_rate) == (0.005, 0.05)
    assert (wide.optimizer, wide.rate, wide.batch, wide.samples) == ("sgd", 0.1, 128, 20)
    assert (wide.prior, wide.eta_steps, wide.delta_steps, wide.delta_rate) == ("tensor", 100, 4, 0.1)
    assert (augerino.eta_rate, augerino.eta_reward, augerino.weight_decay) == (0.005, 0.01, 1e-4)


RIGHT = {
    "rotated": [{"rotation": 172.0}],
    "partially_rotated": [{"rotation": 61.0}],
    "translated": [{"translate_x": 7.0, "translate_y": 8.0}],
    "scaled": [{"scale_x": 1.5, "scale_y": 1.6}],
    "original": [{"translate_x": 2.0, "rotation": 15.0}],
}
WRONG = {
    "rotated": [{"rotation": 149.0}, {"rotation": 172.0, "translate_x": 3.0}, {"rotation": 172.0, "scale_y": 1.3}],
    "partially_rotated": [{"rotation": 125.0}],
    "translated": [{"translate_x": 7.0, "translate_y": 4.0}],
    "scaled": [{"scale_x": 1.5, "scale_y": 1.1}],
    "original": [{"rotation": 60.0}],
}


@pytest.mark.parametrize("variant", RIGHT)
def test_what_counts_as_recovered(variant):
    holds = RECOVERED[variant][1]
    assert all(holds(ZERO | found) for found in RIGHT[variant])
    assert not any(holds(ZERO | found) for found in WRONG[variant])
    assert holds(ZERO) is (variant == ORIGINAL)  # nothing learned


def test_the_published_numbers_are_those_of_the_paper_and_widths_as_it_plots_them():
    assert len(TABLE_1) == 5 * 3 * 5
    assert TABLE_1["mnist", "translated", "mlp", "lila"] == (97.28, 0.05)
    assert TABLE_1["fashion_mnist", "rotated", "cnn", "augerino"] == (85.76, 3.23)
    assert TABLE_1["cifar10", "original", "resnet_8_16", "plain"] == (74.13, 0.51)
    assert printed(TABLE_2["lila/ggn"]) == "91.98 ± 0.04" and printed(None) == "-"
    values = [to_eta(180.0, "deg"), to_eta(8.0, "px"), to_eta(2.0, "factor"), to_eta(0.3, "")]
    assert values == pytest.approx([math.pi, 8 / 14, math.log(2), 0.3])


def test_lila_is_compared_seed_by_seed_on_the_same_data():
    results = [doubles.result(doubles.cell("lila", s), a, -5.0) for s, a in ((0, 0.9), (1, 0.8))]
    results += [doubles.result(doubles.cell("plain", s), a, -6.0) for s, a in ((0, 0.7), (1, 0.5), (2, 0.0))]
    results += [doubles.result(doubles.cell("augerino", 0), 0.95)]
    found = {rival: ahead("", rival, lambda c: (c.variant,)).check(results) for rival in ("plain", "augerino")}
    assert found == {"plain": {"rotated": True}, "augerino": {"rotated": False}}
    worse = ahead("", "plain", lambda c: (c.variant,), lambda group: [r.cell.seed - r.N for r in group])
    assert worse.check(results) == {"rotated": None}  # equal, seed by seed; not so over all seeds
    assert ahead("", "plain", lambda c: (c.variant,)).check(results[:2]) == {}


def test_the_predictive_of_a_linear_model_is_that_of_sampled_weights(monkeypatch):
    monkeypatch.setattr("papers.lila.predictive.DRAWS", 20_000)
    rng, delta = generator(0), 0.1
    net = torch.nn.Linear(2, 2, bias=False).double()
    net.weight.data.copy_(torch.tensor([[2.0, -1.0], [-1.0, 0.5]]))
    x, grid = (torch.randn(n, 2, generator=rng, dtype=torch.float64) for n in (12, 5))
    H = delta * torch.eye(4, dtype=torch.float64)
    for point in x:
        p = (net(point).softmax(0)).detach()
        H += torch.kron(torch.diag(p) - torch.outer(p, p), torch.outer(point, point))
    root = torch.linalg.cholesky(torch.linalg.inv(H))
    weights = net.weight.detach().flatten() + torch.randn(40_000, 4, generator=rng, dtype=torch.float64) @ root.T
    truth = torch.einsum("kcd,md->kmc", weights.unflatten(1, (2, 2)), grid).softmax(-1).mean(0)
    ours = predictive(net, x, grid, delta, 1, rng)
    assert torch.allclose(ours, truth, atol=0.015)
    assert not torch.allclose(net(grid).softmax(1), truth, atol=0.05)  # without the posterior it would not do
