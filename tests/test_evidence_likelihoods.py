"""Likelihoods against torch.distributions; roots and sampled columns against the Hessian in the outputs."""

from itertools import product

import pytest
import torch

from augury.core.rng import generator
from augury.evidence.likelihoods import Categorical, Gaussian
from reference.curvature import empirical, lambdas
from refusal import refused

B, C, SIGMA2 = 4, 3, 0.3


def outputs():
    return torch.randn(B, C, generator=generator(0), dtype=torch.float64)


def targets(regression):
    numbers = torch.randn(B, C, generator=generator(1), dtype=torch.float64)
    return numbers if regression else numbers.argmax(1)


def made(regression):
    return Gaussian(SIGMA2).double() if regression else Categorical()


def curvature(columns):
    """sum over columns of their outer products, datum by datum: [B, C, C]."""
    return sum(c[:, :, None] * c[:, None, :] for c in columns)


@pytest.mark.parametrize("regression", [False, True])
def test_log_prob(regression):
    f, y, D = outputs(), targets(regression), torch.distributions
    expected = (D.Normal(f, SIGMA2**0.5) if regression else D.Categorical(logits=f)).log_prob(y).sum()
    torch.testing.assert_close(made(regression).log_prob(f, y), expected, rtol=1e-6 if regression else 1e-9, atol=1e-7)


def test_gaussian_from_sums_is_its_log_prob_at_any_noise():
    f, y, likelihood = outputs(), targets(True), made(True)
    squares = float((y - f).square().sum())
    for log_sigma2 in (-1.0, 0.7):
        with torch.no_grad():
            likelihood.log_sigma2.fill_(log_sigma2)
        found = likelihood.from_sums(float("nan"), squares, float(y.numel()))
        torch.testing.assert_close(found, likelihood.log_prob(f, y))


@pytest.mark.parametrize("regression", [False, True])
def test_ggn_columns_are_a_root_of_lambda(regression):
    f, y = outputs(), targets(regression)
    columns = list(made(regression).columns(f, y, "ggn", generator(0)))
    assert len(columns) == (C if regression else C - 1)
    torch.testing.assert_close(curvature(columns), lambdas(f, y))


def test_a_single_class_has_one_column_and_no_curvature():
    f = torch.randn(4, 1, dtype=torch.float64, generator=generator(0))
    (column,) = made(False).columns(f, torch.zeros(4, dtype=torch.int64), "ggn", generator(0))
    assert torch.equal(column, torch.zeros(4, 1, dtype=torch.float64))


@pytest.mark.parametrize("regression", [False, True])
def test_ef_column_is_the_gradient_of_the_log_likelihood(regression):
    f, y = outputs(), targets(regression)
    (column,) = made(regression).columns(f, y, "ef", generator(0))
    torch.testing.assert_close(curvature([column]), empirical(f, y))


@pytest.mark.parametrize(("output", "power"), [("ggn", 1), ("mc", 1), ("label", 1), ("ef", 2)])
def test_scale_carries_the_noise(output, power):
    torch.testing.assert_close(made(True).scale(output).item(), SIGMA2**-power, rtol=1e-6, atol=0)
    assert float(Categorical().scale(output)) == 1.0


@pytest.mark.parametrize("regression", [False, True])
def test_signs_average_to_lambda_exactly(regression):
    f, y = outputs(), targets(regression)
    all_signs = [torch.tensor(r, dtype=f.dtype).expand_as(f) for r in product((-1.0, 1.0), repeat=C)]
    mean = curvature(made(regression).root(f, r) for r in all_signs) / len(all_signs)
    torch.testing.assert_close(mean, lambdas(f, y))


def draws(likelihood, f, y, output, M):
    """Curvature of M draws of one column: [M, B, C, C]."""
    many_y = y.repeat(M, *[1] * (y.ndim - 1))
    (columns,) = likelihood.columns(f.repeat(M, 1), many_y, output, generator(2))
    return curvature([columns]).unflatten(0, (M, B))


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("output", ["mc", "label"])
def test_sampled_columns_are_unbiased(output, regression):
    f, y, M = outputs(), targets(regression), 20_000
    sampled = draws(made(regression), f, y, output, M)
    error = (sampled.mean(0) - lambdas(f, y)).abs()
    assert (error <= 5 * sampled.std(0) / M**0.5 + 1e-12).all()
    assert (sampled.std(0) / M**0.5 < 0.02).all()  # so the line above can fail


@pytest.mark.parametrize("regression", [False, True])
def test_a_trio_is_unbiased_and_holds_nearly_all_where_the_network_is_sure(regression):
    f = torch.randn(1, 6, dtype=torch.float64, generator=generator(0)) * 2
    M, likelihood = 20_000, made(regression)
    columns = list(likelihood.columns(f.expand(M, -1), torch.zeros(M, dtype=torch.int64), "trio", generator(1)))
    exact = curvature(list(likelihood.columns(f, torch.zeros(1, dtype=torch.int64), "ggn", generator(0))))[0]
    sampled = torch.stack([c[:, :, None] * c[:, None, :] for c in columns]).sum(0)
    assert len(columns) == 3
    assert ((sampled.mean(0) - exact).abs() <= 5 * sampled.std(0) / M**0.5 + 1e-12).all()
    if not regression:
        largest = torch.linalg.eigvalsh(exact)[-2:].sum()
        assert torch.stack([c.square().sum(1) for c in columns[:2]]).sum(0).min() > 0.98 * largest


def test_one_datum_draws_signs_of_its_own_which_vary_less_than_labels_where_the_network_is_sure():
    f = outputs()[:1].expand(50, C)
    (column,) = Categorical().columns(f, torch.zeros(50, dtype=torch.int64), "mc", generator(0))
    assert len(column.unique(dim=0)) > 4
    f, y = outputs() * 0 + torch.tensor([6.0, 0.0, 0.0]), targets(False)
    spread = {output: draws(Categorical(), f, y, output, 4000).std(0).mean() for output in ("mc", "label")}
    assert spread["mc"] < spread["label"] / 5


@pytest.mark.parametrize(
    ("f", "y", "message"),
    [
        (torch.zeros(4, 3), torch.zeros(4, 1, dtype=torch.int64), r"outputs \[4, 3\] and labels \[4, 1\]"),
        (torch.zeros(4), torch.zeros(4, dtype=torch.int64), r"outputs \[4\] and labels \[4\]"),
        (torch.zeros(4, 3), torch.zeros(4), "type torch.float32. For numbers choose regression"),
        (torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]), r"labels must lie in 0 ... 2.*got 0 ... 3"),
        (torch.zeros(4, 3), torch.tensor([1, 2, -1, 1]), r"got -1 ... 2"),
    ],
)
def test_labels_that_do_not_fit(f, y, message):
    refused(message, Categorical().check, f, y)
    Categorical().check(torch.zeros(3, 3), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("y", [torch.zeros(4), torch.zeros(4, 2), torch.zeros(3, 1)])
def test_targets_that_do_not_fit(y):
    refused(r"outputs \[4, 1\] and targets .*y\[:, None\]", Gaussian().check, torch.zeros(4, 1), y)
    Gaussian().check(torch.zeros(4, 1), torch.zeros(4, 1))


@pytest.mark.parametrize("sigma2", [0.0, -1.0, float("nan")])
def test_noise_must_be_positive(sigma2):
    refused("positive noise variance", Gaussian, sigma2)


def test_unknown_output():
    says = r"output must be one of ef, ggn, label, mc, trio; got 'labels'. Did you mean 'label'"
    refused(says, next, Categorical().columns(outputs(), targets(False), "labels", generator(0)))
