"""The three ways to draw the noise."""

import pytest
import torch

from augury.core.rng import generator
from augury.transforms.base import grid, independent, stratified
from refusal import refused


@pytest.mark.parametrize("draw", [independent, stratified])
def test_draws_are_uniform_one_by_one(draw):
    eps = draw(4000, 5, 2, generator(0)).double()
    assert eps.abs().max() <= 1
    quantiles = torch.linspace(0.05, 0.95, 19, dtype=torch.float64)
    for s in range(5):
        for k in range(2):
            # 5 standard deviations of an empirical quantile of 4000 uniform draws on [-1, 1].
            assert torch.allclose(eps[:, s, k].quantile(quantiles), 2 * quantiles - 1, atol=0.08)


def test_stratified_draws_visit_every_cell_once_and_independent_ones_do_not():
    S = 8
    cells = lambda eps: ((eps + 1) / 2 * S).long().clamp(max=S - 1).sort(dim=1).values  # noqa: E731
    every = torch.arange(S)[None, :, None].expand(50, S, 3)
    assert torch.equal(cells(stratified(50, S, 3, generator(0))), every)
    assert not torch.equal(cells(independent(50, S, 3, generator(0))), every)


def test_stratified_dimensions_are_not_tied_together_and_averages_vary_less():
    eps = stratified(500, 8, 2, generator(0))
    assert torch.corrcoef(eps.flatten(0, 1).T)[0, 1].abs() < 0.08
    f = lambda eps: torch.cos(2 * eps[..., 0] + 0.3).mean(1)  # noqa: E731
    few, many = (f(draw(500, 16, 1, generator(0))).var() for draw in (stratified, independent))
    assert few < 0.02 * many


def test_grid_is_the_equally_spaced_cube():
    assert grid(3, 1).flatten().tolist() == [-1, 0, 1]
    assert grid(1, 3).tolist() == [[0, 0, 0]]
    points = grid(27, 3)
    assert len(points.unique(dim=0)) == 27
    assert set(points.flatten().tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize(("S", "K", "near"), [(20, 2, "16 or 25"), (2, 2, "1 or 4"), (65, 6, "64 or 729")])
def test_a_grid_of_another_size_is_refused_with_the_sizes_that_fit(S, K, near):
    refused(f"S = {near}", grid, S, K)
