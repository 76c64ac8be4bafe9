"""The bound on a softmax head's evidence: below an integral and close to it; and what it decides."""

import math
from dataclasses import replace

import pytest
import torch

from augury.config.hyper import AdaptConfig
from augury.core.rng import generator
from augury.evidence import head_softmax as head_variational
from augury.evidence.head import fit_head
from augury.evidence.head_softmax import BIAS, basis, contrasts, fit_softmax, normalised, variational
from augury.evidence.likelihoods import Categorical
from augury.evidence.posterior import expected_log_prob
from augury.methods.hyper.descriptor_search import Objective
from reference.head import two_class_evidence
from test_evidence_head import classes, numbers


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_against_an_integral(seed, monkeypatch):
    monkeypatch.setattr(head_variational, "ROUNDS", 200)
    x, y = classes(N=14, d=1, C=2, seed=seed)
    rotated = basis(normalised(x).Z)
    fit = fit_softmax(rotated, y, 2, tolerance=1e-10)
    ours = variational(fit)
    factors = torch.logspace(
        -2, 1, 7, base=2
    ).tolist()  # the bound fits the precision: the best of these is above it
    z = rotated.Z[:, 0]
    exact = max(float(two_class_evidence(z, y, fit.delta * s, BIAS * s)) for s in factors)
    assert exact - 0.25 < ours < exact + 0.02


def test_in_contrasts_expectation_slope_and_curvature_are_those_of_the_classes():
    rng = generator(3)
    mix = contrasts(torch.rand(20, 3, generator=rng, dtype=torch.float64).softmax(1))
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
        assert (
            abs(float(ours.slope[0, j]) - float(value(m + e, v).log_prob - value(m - e, v).log_prob) / 2 / h)
            < 1e-4
        )
        in_v = float(value(m, v + e).log_prob - value(m, v - e).log_prob) / 2 / h
        assert abs(float(ours.curvature[0, j]) + 2 * in_v) < 5e-3


def test_it_is_offered_where_it_can_be_afforded_and_needed(monkeypatch):
    x, y = classes()
    head = fit_head(x, y, 3)
    assert head.variational is not None and math.isfinite(head.variational())
    assert fit_head(*numbers(), 2).variational is None
    monkeypatch.setattr(
        head_variational, "AFFORDABLE", 2 * 30 * 5**2
    )  # contrasts, examples, features and a constant
    assert fit_head(x, y, 3).variational is not None
    monkeypatch.setattr(head_variational, "AFFORDABLE", 2 * 30 * 5**2 - 1)
    assert fit_head(x, y, 3).variational is None


@pytest.mark.parametrize(
    "y", [[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 1, 0, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]], ids=str
)
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
        return replace(
            head,
            log_evidence=torch.tensor(first),
            variational=(lambda: -first) if self.offered else None,
        )


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
