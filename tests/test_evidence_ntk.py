"""The stochastic bound against the full Laplace evidence, which it meets or stays below, in float64."""

import math
from itertools import combinations, pairwise

import pytest
import torch

import evidence_cases as cases
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.evidence.likelihoods import Categorical
from augury.evidence.ntk import NtkBound
from augury.models.small import MLP
from evidence_cases import DELTA, C, N, batches, full_evidence, labels, points
from reference.differences import central_difference
from refusal import refused

PRIORS = {"scalar": [0.7], "layer": [0.5, 2.0], "tensor": [0.5, 2.0, 1.0, 0.3]}


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("prior", list(PRIORS))
@pytest.mark.parametrize("chunk", [5, 12])
def test_one_group_of_everything_is_the_full_laplace_evidence(task, prior, chunk):
    likelihood, y = cases.problem(task)
    model, x = cases.on_points(), points()
    delta = torch.tensor(PRIORS[prior], dtype=torch.float64)
    value, gradient = full_evidence(model, likelihood, x, y, delta, prior)
    bound = NtkBound(model, likelihood, None, prior=prior, kernel="exact", chunk=chunk)
    assert bound.n_delta == len(delta)
    torch.testing.assert_close(bound.lower_bound([(x, y)], delta, lambda _: 7), value, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(bound.objective(x, y, delta, N, 7), value, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(bound.gradient([(x, y)], delta, lambda _: 7), gradient, rtol=1e-8, atol=1e-10)
    changed = full_evidence(model, likelihood, x, y, 2 * delta, prior)[0]
    assert abs(changed - value) > 1e-2  # a bound that ignored delta would be seen


LOW = torch.tensor([0.1], dtype=torch.float64)


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
@pytest.mark.parametrize("outputs", [1, 2, None])
def test_smaller_groups_stay_below_and_the_bound_rises_with_their_size(kernel, outputs):
    model, x, y = cases.on_a_grid(), points(), labels()
    bound = NtkBound(model, Categorical(), outputs, kernel=kernel)
    values = [float(bound.lower_bound(batches(x, y, size), LOW, lambda _: 3)) for size in (1, 2, 4, 12)]
    assert all(small < large - 1e-2 for small, large in pairwise(values))
    everything = NtkBound(model, Categorical(), None, kernel=kernel)
    whole = float(everything.lower_bound([(x, y)], LOW, lambda _: 3))
    if outputs is None:
        assert values[-1] == pytest.approx(whole, abs=1e-10)
    else:
        assert values[-1] < whole - 1e-2
    if kernel == "exact":
        assert whole == pytest.approx(float(full_evidence(model, Categorical(), x, y, LOW, "scalar")[0]))


def every_first_output():
    """One seed for each output that a single random output can be."""
    return list({int(torch.randperm(C, generator=generator(s))[0]): s for s in range(50)}.values())


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
def test_random_groups_and_outputs_average_to_the_mean_of_the_partition_bounds(kernel):
    """All pairs of four data and all single outputs, each as likely as the other."""
    model, x, y = cases.on_a_grid(), points(4), labels(4)
    bound = NtkBound(model, Categorical(), 1, kernel=kernel)

    def estimate(pair, seed):
        return float(bound.objective(x[list(pair)], y[list(pair)], LOW, 4, seed, graph=False))

    draws = [estimate(pair, seed) for pair in combinations(range(4), 2) for seed in every_first_output()]
    assert len(draws) == 6 * C
    orders = [[0, 1, 2, 3], [0, 2, 1, 3], [0, 3, 1, 2]]
    partitions = [float(bound.lower_bound(batches(x[o], y[o], 2), LOW, lambda _: 0)) for o in orders]
    mean = math.fsum(draws) / len(draws)
    assert mean == pytest.approx(math.fsum(partitions) / 3, abs=1e-10)
    everything = NtkBound(model, Categorical(), None, kernel=kernel)
    assert mean < float(everything.lower_bound([(x, y)], LOW, lambda _: 0)) - 1e-2
    assert max(draws) - min(draws) > 1e-2  # a single draw is no constant: the mean had something to do


def test_random_groups_of_a_size_that_does_not_divide_the_data_stay_below():
    """Han's inequality: the mean over all triples of four data, and over all pairs of three outputs."""
    model, x, y = cases.on_a_grid(), points(4), labels(4)
    seeds = {frozenset(torch.randperm(C, generator=generator(s))[:2].tolist()): s for s in range(50)}
    triples = [list(triple) for triple in combinations(range(4), 3)]
    means = []
    for outputs, of in ((2, seeds.values()), (None, [0])):
        bound = NtkBound(model, Categorical(), outputs)
        draws = [float(bound.objective(x[t], y[t], LOW, 4, seed, graph=False)) for t in triples for seed in of]
        means.append(math.fsum(draws) / len(draws))
    whole = float(bound.lower_bound([(x, y)], LOW, lambda _: 0))
    assert len(seeds) == 3
    assert means[0] < means[1] - 1e-2 < whole - 2e-2


def test_sampled_outputs_are_unbiased_for_the_partition_bound():
    model, x, y = cases.on_a_grid(), points(), labels()
    bound = NtkBound(model, Categorical(), 1)
    sampled = [
        float(bound.lower_bound([(x, y)], LOW, lambda _, s=s: s, every_output=False)) for s in every_first_output()
    ]
    visited = float(bound.lower_bound([(x, y)], LOW, lambda _: 0))
    assert math.fsum(sampled) / C == pytest.approx(visited, abs=1e-10)
    assert max(sampled) - min(sampled) > 1e-2


@pytest.mark.parametrize("kernel", ["exact", "reduced"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_gradients_in_eta_delta_and_noise_are_those_of_the_value(kernel, task):
    likelihood, y = cases.problem(task)
    model, x = cases.on_points(), points()
    delta = torch.tensor(PRIORS["tensor"], dtype=torch.float64, requires_grad=True)
    bound = NtkBound(model, likelihood, 2, prior="tensor", kernel=kernel, chunk=5)

    def value():
        return bound.objective(x[:8], y[:8], delta, N, seed=3)

    learned = [model.transform.eta, delta, *likelihood.parameters()]
    for parameter, gradient in zip(learned, torch.autograd.grad(value(), learned), strict=True):
        assert gradient.abs().max() > 1e-3
        expected = central_difference(value, parameter, 1e-5)
        torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-7)


def test_without_a_graph_the_other_gradients_are_the_same_and_shares_of_groups_add_up():
    likelihood, y = cases.problem("regression")
    delta = torch.tensor([0.7], dtype=torch.float64, requires_grad=True)
    for kernel in ("exact", "reduced"):
        bound = NtkBound(cases.on_points(), likelihood, 2, kernel=kernel)
        results = []
        for graph in (True, False):
            value = bound.objective(points(), y, delta, 40, 3, graph=graph)
            results.append([value, *torch.autograd.grad(value, [delta, likelihood.log_sigma2])])
        torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-12)
    model, x, y = cases.on_points(), points(), labels()
    bound = NtkBound(model, Categorical(), 2)
    delta = torch.tensor([0.7], dtype=torch.float64)
    total = bound.gradient(batches(x, y, 5), delta, lambda k: k)[0]
    shares = [
        torch.autograd.grad(bound.objective(a, b, delta, len(a), k), model.transform.eta)[0]
        for k, (a, b) in enumerate(batches(x, y, 5))
    ]
    torch.testing.assert_close(total, torch.stack(shares).sum(0), rtol=1e-12, atol=1e-12)


def test_errors_teach():
    model = cases.on_points()
    refused("outputs_per_group must be at least 1; got -1", NtkBound, model, Categorical(), -1)
    with pytest.raises(InputError, match="outputs_per_group must be at most 3"):
        NtkBound(model, Categorical(), 4).objective(points(), labels(), DELTA, N, 3)
    refused("Did you mean 'reduced'", NtkBound, model, Categorical(), kernel="reduce")
    with pytest.raises(InputError, match=r"2 precisions \(linear1, linear2\); got 1"):
        NtkBound(model, Categorical(), prior="layer").objective(points(), labels(), DELTA, N, 3)
    with pytest.raises(InputError, match="no trainable parameters"):
        NtkBound(cases.on_points(MLP([2, C], generator(0)).requires_grad_(False)), Categorical())
