"""The evidence of linear heads against dense twins, exact cases and finite differences; the variational bound."""

import math
from dataclasses import replace

import pytest
import torch

from augury.config.hyper import AdaptConfig
from augury.core.rng import generator
from augury.evidence import head_softmax
from augury.evidence.head import fit_head, fit_loss
from augury.evidence.head_softmax import BIAS, at_precision, basis, fit_softmax, normalised, problem
from augury.evidence.likelihoods import Categorical
from augury.evidence.posterior import expected_log_prob
from augury.methods.hyper.descriptor_search import Objective
from augury.models.hypernetwork import HyperExtractor
from reference.head import gaussian_evidence, softmax_evidence, softmax_optimum, two_class_evidence
from refusal import refused

TIGHT = 1e-14


def classes(N=30, d=4, C=3, seed=0):
    rng = generator(seed)
    y = torch.randint(C, (N,), generator=rng)
    centres = torch.randn(C, d, generator=rng, dtype=torch.float64)
    return centres[y] + torch.randn(N, d, generator=rng, dtype=torch.float64), y


def numbers(N=25, d=4, D=2, seed=0, noise=0.7):
    rng = generator(seed)
    x = torch.randn(N, d, generator=rng, dtype=torch.float64)
    W = torch.randn(d, D, generator=rng, dtype=torch.float64)
    return x, x @ W + noise * torch.randn(N, D, generator=rng, dtype=torch.float64) + 5


def test_features_are_centred_and_of_unit_average_norm_and_the_basis_is_a_rotation():
    for N, d in ((30, 4), (6, 11)):
        Z = normalised(classes(N, d)[0] * 7 + 3).Z
        assert torch.allclose(Z.mean(0), torch.zeros(d).double(), atol=1e-12)
        assert abs(float(Z.square().sum(1).mean()) - 1) < 1e-12
        rotated = basis(Z)
        assert len(rotated.a) == min(N - 1, d)
        assert torch.allclose(rotated.Z.T @ rotated.Z, rotated.a.diag(), atol=1e-10)
        assert torch.allclose(rotated.lift(rotated.Z), Z, atol=1e-10)


@pytest.mark.parametrize(("N", "d"), [(30, 4), (12, 20)])
def test_the_softmax_head_is_at_its_optimum_and_its_evidence_equals_the_dense_twin(N, d):
    x, y = classes(N, d)
    Z = normalised(x).Z
    rotated = basis(Z)
    head = problem(rotated, y, 3, 0.3)
    fit = at_precision(head, 0.3, torch.zeros_like(head.Y.T @ head.Z), TIGHT)
    Theta, J = softmax_optimum(Z, y, 3, 0.3, BIAS)
    assert torch.allclose(rotated.lift(fit.Theta[:, :-1]), Theta[:, :-1], atol=1e-7)
    assert abs(float(head.value(fit.Theta) - J)) < 1e-10
    assert abs(fit.value - float(softmax_evidence(Z, y, 3, 0.3, BIAS))) < 1e-9


def test_the_kronecker_determinant_is_exact_where_every_input_has_the_same_probabilities():
    """With a huge prior precision W is 0 and all p are alike, so A (x) G / N is the GGN itself."""
    x, y = classes()
    rotated = basis(normalised(x).Z)
    delta = 1e9
    head = problem(rotated, y, 3, delta)
    fit = at_precision(head, delta, torch.zeros_like(head.Y.T @ head.Z), TIGHT)
    p = fit.P[0]
    ggn = sum(torch.kron(torch.diag(p) - torch.outer(p, p), torch.outer(z, z)) for z in rotated.Z)
    exact = torch.logdet(torch.eye(len(ggn)).double() + ggn / delta)
    kron = (1 + rotated.a[:, None] * fit.g / (len(y) * delta)).log().sum()
    assert abs(float(exact / kron) - 1) < 1e-6


def test_the_slope_in_the_precision_is_the_total_derivative_and_vanishes_at_the_best():
    x, y = classes()
    rotated = basis(normalised(x).Z)
    head = problem(rotated, y, 3, 1.0)
    zero = torch.zeros_like(head.Y.T @ head.Z)

    def value(t):
        return at_precision(head, math.exp(t), zero, TIGHT).value

    slope = at_precision(head, math.exp(-2.0), zero, TIGHT).slope
    assert abs(slope - (value(-2 + 1e-5) - value(-2 - 1e-5)) / 2e-5) < 1e-5
    best = fit_softmax(rotated, y, 3, tolerance=1e-12)
    assert abs(best.slope) < 1e-5
    assert best.value > max(value(math.log(best.delta) + s) for s in (-0.3, 0.3))


def test_a_warm_start_reaches_the_same_head():
    x, y = classes()
    first = fit_head(x, y, 3, tolerance=1e-12)
    other = x + 0.05 * classes(seed=5)[0]
    cold = fit_head(other, y, 3, tolerance=1e-12)
    warm = fit_head(other, y, 3, tolerance=1e-12, warm=first.warm)
    assert torch.allclose(warm.weight, cold.weight, atol=1e-5)
    assert abs(float(warm.log_evidence - cold.log_evidence)) < 1e-8


@pytest.mark.parametrize(("N", "d"), [(25, 4), (12, 20)])
def test_the_regression_evidence_equals_the_dense_twin_and_is_the_maximum(N, d):
    x, y = numbers(N, d, noise=4.0)
    head = fit_head(x, y, 2)
    Z, scaled = normalised(x).Z, y / y.std(0, correction=0)
    value = gaussian_evidence(Z, scaled, head.delta, head.sigma2)
    assert abs(float(head.log_evidence - value)) < 1e-8
    for a, b in ((1.1, 1), (0.9, 1), (1, 1.1), (1, 0.9)):
        assert gaussian_evidence(Z, scaled, head.delta * a, head.sigma2 * b) < value


@pytest.mark.parametrize("make", [classes, numbers])
def test_the_head_predicts_for_features_as_they_came(make):
    """The folded head gives what the one on normalised features gives: for numbers, the normal equations."""
    x, y = make()
    C = 3 if y.ndim == 1 else 2
    head = fit_head(x, y, C, tolerance=1e-12)
    outputs = x @ head.weight.T + head.bias
    Z = normalised(x).Z
    if y.ndim == 1:
        Theta, _ = softmax_optimum(Z, y, C, head.delta, BIAS)
        assert torch.allclose(outputs.softmax(1), (Z @ Theta[:, :-1].T + Theta[:, -1]).softmax(1), atol=1e-6)
        return
    ridge = Z.T @ Z + head.delta * head.sigma2 * torch.eye(Z.shape[1]).double()
    expected = Z @ torch.linalg.solve(ridge, Z.T @ (y - y.mean(0))) + y.mean(0)
    assert torch.allclose(outputs, expected, atol=1e-8)
    assert torch.allclose(head.linear()(x.float()), outputs.float(), atol=1e-4)


@pytest.mark.parametrize("make", [classes, numbers])
@pytest.mark.parametrize("many", [True, False])
def test_the_gradient_in_the_features_matches_finite_differences(make, many):
    x, y = make(20, 3) if many else make(14, 16)
    if y.ndim == 2:
        y = y + 4 * torch.randn(y.shape, generator=generator(2), dtype=torch.float64)
    C = 3 if y.ndim == 1 else 2

    def value(features):
        return fit_head(features, y, C, tolerance=TIGHT).log_evidence

    x.requires_grad_()
    (slope,) = torch.autograd.grad(value(x), x)
    for row, column in ((0, 0), (3, 2), (7, 1)):
        step = torch.zeros_like(x)
        step[row, column] = 1e-4
        central = (value((x + step).detach()) - value((x - step).detach())) / 2e-4
        assert abs(float(central - slope[row, column])) < 1e-5 * max(1.0, abs(float(central)))


def extractor(K=2, d_h=6):
    made = HyperExtractor("conv16", ("rotation", "color")[:K], (1, 9, 9), generator(3), d_h)
    return made.double().requires_grad_(False)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_gradient_reaches_the_descriptor_and_matches_finite_differences(task):
    net, rng = extractor(), generator(1)
    x = torch.rand(24, 1, 9, 9, generator=rng, dtype=torch.float64)
    y = torch.arange(24) % 3
    x[y == 1, :, 2:5] += 0.6
    x[y == 2, :, :, 2:5] += 0.6
    if task == "regression":
        y = torch.stack([x[:, 0, 2:5].mean((1, 2)), x[:, 0, :, 2:5].mean((1, 2)) ** 2], 1)
        y = y + 0.05 * torch.randn(24, 2, generator=rng, dtype=torch.float64)
    net.calibrate(x)

    def value(i):
        return fit_head(net(x, i), y, 3 if task == "classification" else 2, tolerance=TIGHT).log_evidence

    i = torch.tensor([0.4, 0.7], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(value(i), i)
    for k in range(2):
        e = torch.zeros(2).double()
        e[k] = 1e-4
        central = (value((i + e).detach()) - value((i - e).detach())) / 2e-4
        assert abs(float(central - slope[k])) < 1e-4 * max(1.0, abs(float(central)))
    assert float(slope.abs().max()) > 1e-3


def test_the_evidence_prefers_the_features_that_carry_the_label():
    x, y = classes(60, 4)
    noise = torch.randn(60, 40, generator=generator(9), dtype=torch.float64)
    clear, mixed = fit_head(x, y, 3), fit_head(torch.cat([x, 3 * noise], 1), y, 3)
    assert float(clear.log_evidence) > float(mixed.log_evidence) + 5


def test_what_cannot_be_fitted_is_refused():
    x, _ = classes()
    refused("at least two classes", fit_head, x, torch.zeros(30, dtype=torch.int64), 3)
    refused("same for all", fit_head, torch.ones(30, 4), torch.arange(30) % 3, 3)
    refused("finite", fit_head, x / 0, torch.arange(30) % 3, 3)


@pytest.mark.parametrize("make", [classes, numbers])
def test_the_loss_at_the_best_head_and_its_gradient(make):
    x, y = make(20, 3)
    C = 3 if y.ndim == 1 else 2

    def value(features):
        return fit_loss(features, y, C, ridge=0.2, tolerance=TIGHT).value

    Z = normalised(x).Z
    if y.ndim == 1:
        expected = softmax_optimum(Z, y, C, 0.2, BIAS)[1]
    else:
        scaled = (y - y.mean(0)) / y.std(0, correction=0)
        W = torch.linalg.solve(Z.T @ Z + 0.2 * torch.eye(3).double(), Z.T @ scaled)
        expected = -((scaled - Z @ W).square().sum() + 0.2 * W.square().sum()) / 2
    assert abs(float(value(x) - expected)) < 1e-9
    x.requires_grad_()
    (slope,) = torch.autograd.grad(value(x), x)
    step = torch.zeros_like(x)
    step[3, 2] = 1e-5
    central = (value((x + step).detach()) - value((x - step).detach())) / 2e-5
    assert abs(float(central - slope[3, 2])) < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_against_an_integral(seed, monkeypatch):
    monkeypatch.setattr(head_softmax, "ROUNDS", 200)
    x, y = classes(N=14, d=1, C=2, seed=seed)
    rotated = basis(normalised(x).Z)
    fit = fit_softmax(rotated, y, 2, tolerance=1e-10)
    ours = head_softmax.variational(fit)
    factors = torch.logspace(-2, 1, 7, base=2).tolist()  # the bound fits the precision: the best is above it
    z = rotated.Z[:, 0]
    exact = max(float(two_class_evidence(z, y, fit.delta * s, BIAS * s)) for s in factors)
    assert exact - 0.25 < ours < exact + 0.02


def test_in_contrasts_expectation_slope_and_curvature_are_those_of_the_classes():
    rng = generator(3)
    mix = head_softmax.contrasts(torch.rand(20, 3, generator=rng, dtype=torch.float64).softmax(1))
    assert torch.allclose(mix.mT @ mix, torch.eye(2).double(), atol=1e-12)
    assert torch.allclose(mix.sum(0), torch.zeros(2).double(), atol=1e-12)
    m, v = torch.randn(1, 2, generator=rng).double(), torch.tensor([[0.4, 0.9]]).double()
    y = torch.tensor([1])

    def value(m, v):
        return expected_log_prob(Categorical(), m, v, y, generator(0), 400_000, mix)

    ours, h = value(m, v), 1e-3
    for j in range(2):
        e = torch.zeros(1, 2).double()
        e[0, j] = h
        in_m = float(value(m + e, v).log_prob - value(m - e, v).log_prob) / 2 / h
        assert abs(float(ours.slope[0, j]) - in_m) < 1e-4
        in_v = float(value(m, v + e).log_prob - value(m, v - e).log_prob) / 2 / h
        assert abs(float(ours.curvature[0, j]) + 2 * in_v) < 5e-3


def test_it_is_offered_where_it_can_be_afforded_and_needed(monkeypatch):
    x, y = classes()
    head = fit_head(x, y, 3)
    assert head.variational is not None and math.isfinite(head.variational())
    assert fit_head(*numbers(), 2).variational is None
    cost = 2 * 30 * 5**2  # contrasts, examples, features and a constant
    monkeypatch.setattr(head_softmax, "AFFORDABLE", cost)
    assert fit_head(x, y, 3).variational is not None
    monkeypatch.setattr(head_softmax, "AFFORDABLE", cost - 1)
    assert fit_head(x, y, 3).variational is None


@pytest.mark.parametrize("y", [[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 1, 0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("what", ["noise", "separable", "alike"])
def test_hard_cases_stay_finite_and_below_zero(what, y):
    """Features that say nothing, or everything, or are nearly all one; a class without examples, or with one."""
    y = torch.tensor(y)
    x = torch.randn(8, 4, generator=generator(0))
    if what == "separable":
        x = x / 1000 + 10 * y[:, None]
    if what == "alike":
        x = x[:1].repeat(8, 1) + torch.eye(8, 4)[:, :1]
    value = fit_head(x, y, 3).variational()
    assert math.isfinite(value) and value < 0


class Told(Objective):
    """Heads whose bound is known: the bound prefers what Laplace's evidence does not."""

    def __init__(self, offered):
        self.points, self.tell, self._solved, self.config = [], None, [], AdaptConfig()
        self.offered, self.asked = offered, 0

    def _fit_at(self, i):
        self.asked += 1
        first = float(i[0])
        head = fit_head(*classes(), 3)
        bound = (lambda: -first) if self.offered else None
        return replace(head, log_evidence=torch.tensor(first), variational=bound)


@pytest.mark.parametrize(("offered", "chosen"), [(True, 0.0), (False, 1.0)])
def test_where_it_is_offered_it_decides(offered, chosen):
    told = Told(offered)
    points = [told.at(torch.tensor([a, 1.0])) for a in (0.5, 1.0, 0.0)]
    assert float(told.best(points).i[0]) == chosen
    assert told.best(points[:1]) is points[0] and told.asked == 3


def test_a_head_that_was_not_kept_is_solved_again():
    told = Told(True)
    points = [told.at(torch.tensor([a, 1.0])) for a in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
    assert float(told.best(points).i[0]) == pytest.approx(0.1) and told.asked == 8
