"""The SGPR baseline of paper B's Table 2, against Gaussian processes written out in full."""

import math
import sys

import pytest
import torch
from torch.distributions import MultivariateNormal

from augury.core.errors import InputError
from augury.core.rng import generator
from papers.invariant_weights.sgpr import Sgpr, sgpr, typical_distance


def problem(n=40):
    x = torch.randn(n, 1, 3, generator=generator(0), dtype=torch.float64)
    return x, (x[:, 0, 0] > 0).long() + (x[:, 0, 1] > 0).long()


def kernel(fit: Sgpr, a, b):
    return fit.variance * torch.exp(-torch.cdist(a, b).square() / (2 * fit.length_scale**2))


def titsias(fit: Sgpr, x, y) -> float:
    """Return the bound with N x N matrices."""
    x, targets = x.flatten(1), torch.nn.functional.one_hot(y).to(x)
    K, K_u, K_uu = kernel(fit, x, x), kernel(fit, x, fit.inducing), kernel(fit, fit.inducing, fit.inducing)
    Q = K_u @ torch.linalg.solve(K_uu, K_u.mT)
    noisy = Q + fit.noise * torch.eye(len(x), dtype=x.dtype)
    fits = sum(
        MultivariateNormal(m.expand(len(x)), noisy).log_prob(t) for m, t in zip(fit.mean, targets.mT, strict=True)
    )
    return float(fits - targets.shape[1] * (K - Q).trace() / (2 * fit.noise))


@pytest.mark.parametrize("steps", [0, 4])
def test_the_bound_is_titsias(steps):
    x, y = problem()
    fit = sgpr(x, y, x, generator(0), inducing=7, steps=steps)
    assert fit.inducing.shape == (7, 3) and len(fit.bounds) == steps
    assert math.isclose(fit.bound, titsias(fit, x, y), rel_tol=1e-6)


def test_with_every_input_inducing_it_is_the_exact_process():
    x, y = problem()
    x_test, flat = torch.randn(9, 1, 3, generator=generator(1), dtype=x.dtype), x.flatten(1)
    fit, sparse = (sgpr(x, y, x_test, generator(0), inducing=m, steps=0) for m in (99, 10))
    noisy = kernel(fit, flat, flat) + fit.noise * torch.eye(len(x), dtype=x.dtype)
    residual = torch.nn.functional.one_hot(y).to(x) - fit.mean
    exact = sum(MultivariateNormal(0 * r, noisy).log_prob(r) for r in residual.mT)
    assert math.isclose(fit.bound, float(exact), rel_tol=1e-6) and sparse.bound < fit.bound - 0.1
    means = kernel(fit, x_test.flatten(1), flat) @ torch.linalg.solve(noisy, residual) + fit.mean
    torch.testing.assert_close(fit.predictions, means, atol=1e-6, rtol=0)
    assert (sparse.predictions - means).abs().max() > 1e-3


def test_training_raises_the_bound_and_finds_the_classes():
    x, y = problem(80)
    fit = sgpr(x[:60], y[:60], x[60:], generator(0), inducing=20, steps=40, rate=0.1)
    assert fit.bound > fit.bounds[0] + 20
    assert (fit.predictions.argmax(1) == y[60:]).float().mean() > 0.75


def test_the_length_scale_starts_at_the_distance_between_inputs_and_the_extra_is_named(monkeypatch):
    assert typical_distance(torch.tensor([[0.0], [3.0], [7.0]])) == 4.0
    assert typical_distance(torch.zeros(5, 2)) == 1.0
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    x, y = problem()
    with pytest.raises(InputError, match=r"gpytorch must be installed.*pip install -e '\.\[papers\]'"):
        sgpr(x, y, x, generator(0), steps=1)
