"""log|H| of all layers at once: the exact Jacobian's where no position is reduced, and its growth with the data."""

import math

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.curvature.joint import growth, half_log_det
from augury.curvature.ntk import ExactKernel, Precisions, log_det
from augury.evidence.laplace import Laplace
from augury.evidence.likelihoods import Categorical, Gaussian
from augury.models.small import MLP
from evidence_cases import C, labels, on_points, points

NETWORKS = {
    "mlp": lambda: MLP([2, 5, C], generator(0)),
    "norms and scalars": lambda: nn.Sequential(nn.Linear(2, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, C)),
    "frozen bias": lambda: nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, C)),
}


def both(model, prior, likelihood, x, y):
    """Half log-determinants of all data together: ours in three batches, and from the exact Jacobian of every view."""
    laplace = Laplace(model, likelihood, prior=prior)
    delta = torch.linspace(0.3, 2, laplace.structure.n_delta, dtype=torch.float64)
    parts = list(zip(x.split(4), y.split(4), strict=True))
    K = laplace.kernel(parts, lambda k: k, model.samples, delta)
    views = torch.cat([model.views(part, generator(k)) for k, (part, _) in enumerate(parts)])
    precisions = Precisions(model.net, prior)
    everything = [torch.arange(C)]
    _, (stack,) = ExactKernel(model.net, precisions).group(views, model.samples, likelihood.root, everything, False)
    exact = torch.einsum("l,lij->ij", delta.reciprocal(), stack) * likelihood.scale("ggn")
    return half_log_det(K), float(log_det(exact.detach())) / 2


@pytest.mark.parametrize("prior", ["scalar", "layer"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_views_keep_their_own_products_and_layers_are_taken_together(name, prior):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = NETWORKS[name]()
    if name == "frozen bias":
        net[0].bias.requires_grad_(False)
    model = on_points(net, S=6)
    ours, exact = both(model, prior, Categorical(), points(), labels())
    assert ours == pytest.approx(exact, rel=1e-10)
    assert exact > 0.5


def test_noise_of_a_regression_scales_the_kernel():
    x, sigma2 = points(), Gaussian(0.3)
    ours, exact = both(on_points(S=6), "scalar", sigma2, x, torch.zeros(len(x), C, dtype=x.dtype))
    assert ours == pytest.approx(exact, rel=1e-6)


def test_data_that_share_nothing_grow_in_proportion_and_equal_data_by_the_logarithm():
    alone = (3.0 * torch.eye(8, dtype=torch.float64)).view(1, 8, 1, 8)
    same = torch.full((1, 8, 1, 8), 3.0, dtype=torch.float64)
    assert growth(alone) == pytest.approx(1)
    assert growth(same) == pytest.approx(math.log2(math.log(25) / math.log(13)))
    assert half_log_det(alone) == pytest.approx(4 * math.log(4))


@pytest.mark.parametrize("data", [1, 6])
def test_a_single_datum_and_a_network_that_knows_nothing_have_a_growth(data):
    assert growth(torch.zeros(2, data, 2, data, dtype=torch.float64)) == 1
