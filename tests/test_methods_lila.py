"""LILA and its parts: the steps up the evidence, the last-layer ablation."""

import math
from copy import deepcopy
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from augury.config.learn import LearnConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.evidence.ascent import Evidence
from augury.methods.learn import learn
from augury.methods.lila import LastLayer, Lila
from augury.models.orbit import OrbitAverage
from augury.models.small import MLP
from augury.training.batches import Batches
from augury.training.learner import Findings
from augury.transforms.affine2d import AffineCoordinates
from reference.differences import central_difference
from refusal import refused
from training_doubles import KillAt, Killed


def two_rings(n: int, rotated: bool, seed: int = 0) -> Dataset:
    """Two classes told apart by the radius (rotated) or by the side of a line (not rotated)."""
    rng = generator(seed)
    y = torch.arange(n) % 2
    angle = torch.rand(n, generator=rng) * 2 * math.pi
    radius = 0.6 + 0.8 * y + 0.1 * torch.randn(n, generator=rng)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    if not rotated:
        x = torch.randn(n, 2, generator=rng) * 0.3
        x[:, 0] += y * 2.0 - 1.0
    names = ("inner", "outer")
    return Dataset(x, y, x[:20], y[:20], kind="coordinates", class_names=names, source="rings")


def make(dtype: torch.dtype = torch.float64, **settings: object) -> tuple[Evidence, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2)).to(dtype)
    transform = AffineCoordinates(("rotation", "scale_x")).to(dtype)
    with torch.no_grad():
        transform.eta.copy_(torch.tensor([0.7, 0.2]))
    data = two_rings(24, rotated=True)
    evidence = Evidence(OrbitAverage(net, transform, 3), N=24, **settings)  # type: ignore[arg-type]
    return evidence, data.x_train.to(dtype), data.y_train


def test_the_state_of_an_evidence_continues_bit_for_bit():
    def steps(evidence, x, y, n, seed):
        return [evidence.step([(x, y)], generator(seed + k))["log_evidence"] for k in range(n)]

    evidence, x, y = make(task="regression", evidence_images=12, eta_steps=2)
    y = y[:, None].double() - torch.tensor([0.5, 0.2])
    steps(evidence, x, y, 2, 0)
    model, state = deepcopy(evidence.model.state_dict()), deepcopy(evidence.state_dict())
    expected = steps(evidence, x, y, 2, 5)
    fresh, _, _ = make(task="regression", evidence_images=12, eta_steps=2)
    fresh.model.load_state_dict(model)
    fresh.load_state_dict(state)
    assert steps(fresh, x, y, 2, 5) == expected
    assert torch.equal(fresh.model.transform.eta, evidence.model.transform.eta)


def test_a_state_that_is_none_is_refused():
    evidence = Evidence(OrbitAverage(MLP([2, 5, 2], generator(0)), AffineCoordinates("rotation")), N=20)
    refused("must be what state_dict.. returned; it has no likelihood", evidence.load_state_dict, {})


def test_an_evidence_moves_with_its_model_and_takes_a_loader_or_a_data_set():
    evidence, x, y = make(torch.float32)
    evidence.step([(x, y)], generator(0))
    assert evidence.to(torch.float64) is evidence
    moments = [s["exp_avg"] for s in evidence.eta_optimizer.state.values()]
    assert {m.dtype for m in [*moments, *evidence.model.parameters()]} == {torch.float64}
    evidence.step([(x.double(), y)], generator(1))
    evidence, x, y = make()
    pairs = TensorDataset(x, y)
    expected = evidence.value([(x, y)], generator(0))
    assert evidence.value(DataLoader(pairs, 24), generator(0)) == expected
    assert evidence.value(pairs, generator(0)) == expected
    for data in (DataLoader(pairs, 5, shuffle=True), pairs):
        assert evidence.step(data, generator(0))["delta"] > 0
    words = [{"image": x[k], "label": y[k]} for k in range(24)]
    with pytest.raises(InputError, match=r"pair \(inputs, labels\).* a dictionary with image, label"):
        evidence.step(DataLoader(words, 5), generator(0))
    refused("got Tensor", evidence.step, DataLoader(x, 5), generator(0))


def test_penalty_is_the_prior_and_its_gradient_is_what_is_added():
    evidence, _, _ = make(delta=0.7)
    parameters = list(evidence.model.net.parameters())
    expected = torch.autograd.grad(evidence.penalty(), parameters)
    for p in parameters:
        p.grad = torch.zeros_like(p)
    evidence.add_prior_gradient()
    squares = sum(float(p.detach().square().sum()) for p in parameters)
    assert float(evidence.penalty().detach()) == pytest.approx(0.7 * squares / 2 / 24, rel=1e-12)
    for p, g in zip(parameters, expected, strict=True):
        torch.testing.assert_close(p.grad, g)


def value_at(evidence: Evidence, x: torch.Tensor, y: torch.Tensor, seed: int) -> float:
    fit = evidence.laplace.fit(evidence._chunks(x, y), lambda k: seed + k, None, evidence.N)
    return float(evidence.laplace.log_evidence(fit, evidence.delta))


@pytest.mark.parametrize("images", [24, 12])
def test_gradient_is_the_derivative_of_the_value_also_from_a_scaled_up_sample(images):
    evidence, x, y = make(output="ggn")
    x, y = x[:images], y[:images]
    (gradient,) = evidence.gradient(x, y, seed=5)
    expected = central_difference(lambda: value_at(evidence, x, y, 5), evidence.model.transform.eta, 1e-5)
    assert gradient.tolist() == pytest.approx(expected.tolist(), rel=1e-6, abs=1e-6)


def test_lila_finds_the_rotation_that_is_there_and_not_the_one_that_is_not():
    settings = {"samples": 10, "epochs": 60, "batch": 50, "generators": ("rotation",), "rate": 0.02}
    there = learn(two_rings(100, rotated=True), method="lila", **settings).invariance
    absent = learn(two_rings(100, rotated=False), method="lila", **settings).invariance
    assert there.widths["rotation"].value > 150
    assert there.widths["rotation"].verdict == "invariant"
    assert absent.widths["rotation"].value < 60
    assert there.log_evidence is not None
    assert there.test_accuracy == 1.0


def test_lila_learns_the_noise_of_a_regression():
    rng = generator(0)
    x = torch.randn(120, 2, generator=rng)
    y = x.norm(dim=1, keepdim=True) + 0.1 * torch.randn(120, 1, generator=rng)
    data = Dataset(x, y, x[:20], y[:20], kind="coordinates", task="regression", source="radius")
    settings = {"samples": 10, "epochs": 50, "batch": 60, "rate": 0.02, "delta_steps": 5, "delta_rate": 0.1}
    learned = learn(data, method="lila", generators=("rotation",), **settings)
    assert learned.invariance.widths["rotation"].value > 120
    assert learned.invariance.test_error < 0.35


def test_a_killed_lila_run_continues_to_the_same_bits(tmp_path):
    data = two_rings(40, rotated=True)
    settings = {"samples": 4, "batch": 20, "generators": ("rotation",), "burn_in": 1, "checkpoint_seconds": 0.0}
    whole = learn(data, method="lila", epochs=6, run=tmp_path / "whole", **settings)

    with pytest.raises(Killed):
        learn(data, method="lila", epochs=6, run=tmp_path / "cut", callbacks=[KillAt(4)], **settings)
    again = learn(data, method="lila", epochs=6, run=tmp_path / "cut", resume=True, **settings)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name
    assert whole.invariance.log_evidence == again.invariance.log_evidence


def test_last_layer_is_bayesian_about_the_last_layer_only():
    net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
    config = LearnConfig.for_method("last_layer", weight_decay=0.3)
    learner = LastLayer(net, AffineCoordinates(), config, "classification", 24, torch.zeros(2, 2))
    assert [block.name for block in learner.evidence.laplace.structure.blocks] == ["2"]
    decay = {id(p): g["weight_decay"] for g in learner.weights.param_groups for p in g["params"]}
    assert [decay[id(p)] for p in net.parameters()] == [0.3, 0.3, 0.0, 0.0]
    result = learn(two_rings(40, True), method="last_layer", epochs=6, samples=4, batch=20)
    assert result.invariance.log_evidence is not None


def test_batchnorm_is_refused_and_explained_or_evaluated_where_asked():
    net = nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))
    settings = {"method": "lila", "epochs": 6, "samples": 4, "batch": 20, "generators": ("rotation",)}
    with pytest.raises(InputError, match=r"BatchNorm.*batchnorm='evaluate'.*swap_batchnorm"):
        learn(two_rings(40, True), model=net, **settings)
    learned = learn(two_rings(40, True), model=net, batchnorm="evaluate", **settings)
    assert learned.invariance.log_evidence is not None


def test_priors_must_be_positive_and_the_bound_has_no_last_layer_form():
    refused("delta must be a positive", make, delta=0.0)
    refused("no last-layer form", learn, two_rings(20, True), method="last_layer", evidence="ntk", epochs=1)


def test_plain_learns_its_prior_by_the_evidence_or_keeps_a_weight_decay():
    data = two_rings(40, rotated=True)
    settings = {"method": "plain", "epochs": 30, "batch": 10, "burn_in": 1, "rate": 0.02, "finish": 0.0}
    by_evidence = learn(data, **settings)
    by_decay = learn(data, evidence="none", **settings)
    assert by_evidence.invariance.log_evidence is not None
    assert by_evidence.invariance.log_evidence_without is None
    assert len({row["delta"] for row in by_evidence.metrics if "delta" in row}) > 1
    assert by_decay.invariance.log_evidence is None


def test_the_evidence_is_climbed_about_twenty_times():
    for epochs in (4, 10, 60, 250):
        config = LearnConfig.for_method("lila", epochs=epochs)
        assert 15 <= sum(config.climbs(e) for e in range(1, epochs + 1)) <= 28
        assert config.climbs(config.learning) >= 1 and (epochs == 4 or config.climbs(config.burn_in) == 0)
        assert not any(config.climbs(e) for e in range(config.learning + 1, epochs + 1))


def test_widths_at_rest_are_climbed_half_as_often_and_without_second_derivatives(monkeypatch):
    settings = {"epochs": 60, "finish": 0.0, "evidence_below": 9.0, "resting": 10, "eta_rate": 0.0}
    config = LearnConfig.for_method("lila", **settings)
    learner = Lila(MLP([2, 5, 2], generator(0)), AffineCoordinates("rotation"), config, "classification", 20)
    batches = Batches(torch.randn(20, 2, generator=generator(1)), torch.arange(20) % 2, 10, torch.device("cpu"))
    held, at, found = [], [], learner.evidence.laplace.preconditioner
    monkeypatch.setattr(
        learner.evidence.laplace, "preconditioner", lambda *a, **given: held.append(given["held"]) or found(*a, **given)
    )
    for epoch in range(1, 61):
        before = len(held)
        learner.end_epoch(batches, epoch, generator(epoch))
        at += [epoch] * (len(held) - before)
    assert held == [False] * 10 + [True] * (len(held) - 10)
    assert {b - a for a, b in pairwise(at[:10])} == {3}
    assert {b - a for a, b in pairwise(at[10:-1])} == {6} and at[-1] == 60


def test_widths_that_drift_are_not_at_rest():
    config = LearnConfig.for_method("lila", resting=6)
    learner = Lila(MLP([2, 5, 2], generator(0)), AffineCoordinates("rotation"), config, "classification", 20)
    steady, drifting = [0.5, 0.9, 0.5, 0.9, 0.5, 0.9], [0.5, 0.62, 0.74, 0.86, 0.98, 1.1]
    for eta, rests in ((steady, True), (drifting, False), (steady[1:], False), ([2.0, *steady], True), ([], False)):
        learner.trail = torch.tensor(eta, dtype=torch.float64)[:, None]
        assert learner.at_rest() is rests


def test_widths_end_at_the_mean_of_their_last_fifth_and_its_spread_is_in_the_interval(monkeypatch):
    learner = Lila(MLP([2, 5, 2], generator(0)), AffineCoordinates("rotation"), LearnConfig(), "classification", 20)
    learner.trail = torch.tensor([[0.0]] * 8 + [[0.4], [0.6]], dtype=torch.float64)
    seen, batches = {}, Batches(torch.zeros(20, 2), torch.zeros(20).long(), 10, torch.device("cpu"))

    def spied(*args, **_):
        seen.update(spread=args[5])
        return Findings({})

    monkeypatch.setattr("augury.methods.lila.intervals", spied)
    learner.conclude(batches, generator(0))
    assert learner.model.transform.describe()["rotation"] == pytest.approx(math.degrees(0.5))
    assert seen["spread"]["rotation"] == pytest.approx(0.2 / 2**0.5)
    learner.trail = learner.trail[-9:]  # too few: the widths are still on their way
    learner.model.transform.set_widths({"rotation": 10.0})
    learner.conclude(batches, generator(0))
    assert learner.model.transform.describe()["rotation"] == pytest.approx(10) and seen["spread"] == {}


def test_the_evidence_is_climbed_as_often_as_one_says():
    config = LearnConfig.for_method("lila", epochs=10, burn_in=1, evidence_every=3, finish=0.0)
    assert [e for e in range(1, 11) if config.climbs(e)] == [4, 7, 10]


@pytest.mark.parametrize(("N", "epochs"), [(1000, 240), (4000, 60), (4050, 59), (10**6, 1)])
def test_the_budget_is_in_steps(N, epochs):
    assert LearnConfig.for_method("lila").with_epochs(N).epochs == epochs
    assert LearnConfig.for_method("lila", epochs=7).with_epochs(N).epochs == 7


def test_widths_wait_until_the_network_beats_a_guess():
    settings = {"epochs": 8, "batch": 20, "rate": 1e-6, "generators": ("rotation",)}
    waiting = learn(two_rings(40, True), method="lila", **settings)
    assert not any("log_evidence" in row or row["widths"]["rotation"] for row in waiting.metrics)
    eager = learn(two_rings(40, True), method="lila", **settings, evidence_below=9.0)
    assert any("log_evidence" in row for row in eager.metrics)


def test_in_the_end_only_the_weights_move_under_a_tenth_of_the_prior():
    settings = {"epochs": 10, "batch": 20, "generators": ("rotation",), "evidence_below": 9.0}
    found = learn(two_rings(40, True), method="lila", **settings)
    assert [row["epoch"] for row in found.metrics if "log_evidence" in row][-1] == 5
    assert found.epoch == 10
    width = found.invariance.widths["rotation"].value
    assert all(row["widths"]["rotation"] == pytest.approx(width) for row in found.metrics[5:])
    evidence, _, _ = make(delta=0.1)
    weights = list(evidence.model.net.parameters())
    for p in weights:
        p.grad = torch.zeros_like(p)
    evidence.add_prior_gradient(0.1)
    expected = torch.autograd.grad(evidence.penalty(), weights)
    for p, g in zip(weights, expected, strict=True):
        torch.testing.assert_close(p.grad, g / 10)


def test_the_prior_is_solved_for_its_maximum():
    evidence, x, y = make(delta=0.1)
    fit = evidence._fit(x, y, generator(0))
    evidence._fit_prior(fit)
    value = evidence.laplace.log_evidence(fit, evidence.log_delta.exp())
    assert torch.autograd.grad(value, evidence.log_delta)[0].abs().max() < 1e-2
    held, x, y = make(delta=0.1, delta_steps=0)
    held._fit_prior(held._fit(x, y, generator(0)))
    assert held.delta.tolist() == pytest.approx([0.1])


class Gate(nn.Module):
    """A layer that nobody covers: a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(2, 12, generator=generator(0)))
        self.v = nn.Parameter(torch.randn(2, 12, generator=generator(1)))

    def forward(self, x):
        return torch.tanh(x @ self.w) * (1 + x @ self.v)


def test_a_network_that_nobody_covers_learns_by_the_bound_and_says_so_otherwise():
    net = nn.Sequential(Gate(), nn.Linear(12, 2))
    settings = {"samples": 8, "epochs": 40, "batch": 50, "generators": ("rotation",), "rate": 0.02}
    refused(r"Gate.*evidence='ntk'", learn, two_rings(100, True), model=net, **settings)
    learned = learn(two_rings(100, True), model=net, evidence="ntk", eta_images=50, **settings)
    assert learned.invariance.widths["rotation"].value > 120
    assert learned.invariance.log_evidence < 0
