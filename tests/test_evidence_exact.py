"""The Laplace evidence where the truth is known: linear-Gaussian models, and Eq. 9 with dense matrices."""

import pytest
import torch
from torch import nn

from augury.core.rng import generator
from augury.evidence.laplace import Laplace
from augury.models.orbit import OrbitAverage
from augury.transforms.affine2d import AffineCoordinates
from curvature_cases import filled
from evidence_cases import batches, data, likelihood, model, seeds
from reference.evidence import laplace_evidence, linear_gaussian_evidence, posterior_mode

SIGMA2 = 0.4


def linear_model(bias, S):
    """f(x) = W x (+ b) under random rotations and translations of x."""
    transform = AffineCoordinates(["rotation", "translate_x"]).double()
    with torch.no_grad():
        transform.eta.copy_(torch.tensor([0.9, 0.4]) * (S > 1))
    return OrbitAverage(filled(nn.Sequential(nn.Linear(2, 3, bias=bias))), transform, samples=S)


def features(model, parts, bias):
    """Mean views of every datum, with the noise that `fit` draws, and a 1 for the bias."""
    views = [model.views(x, generator(seeds(k))).unflatten(0, (len(x), -1)) for k, (x, _) in enumerate(parts)]
    Phi = torch.cat(views).mean(1).detach()
    return torch.cat([Phi, torch.ones_like(Phi[:, :1])], dim=1) if bias else Phi


@torch.no_grad()
def at_the_mode(layer, Phi, y, delta):
    w = posterior_mode(Phi, y, delta, SIGMA2)
    layer.weight.copy_(w[: layer.in_features].T)
    if layer.bias is not None:
        layer.bias.copy_(w[-1])


def evidence(laplace, parts, delta):
    return laplace.log_evidence(laplace.fit(parts, seeds), delta).detach()


@pytest.mark.parametrize("structure", ["kron", "full"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("S", [1, 4])
def test_exact_on_a_linear_gaussian_model(structure, bias, S):
    model = linear_model(bias, S)
    x, y = data((2,), regression=True, N=9)
    parts = batches(x, y, 4)
    Phi, delta = features(model, parts, bias), torch.tensor([0.7], dtype=torch.float64)
    at_the_mode(model.net[0], Phi, y, delta.expand(Phi.shape[1]))
    laplace = Laplace(model, likelihood(True, SIGMA2), structure, "ggn")
    expected = linear_gaussian_evidence(Phi, y, delta.expand(Phi.shape[1]), SIGMA2)
    torch.testing.assert_close(evidence(laplace, parts, delta), expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("structure", ["kron", "full"])
@pytest.mark.parametrize("centred", [True, False])
def test_exact_with_precisions_of_their_own_for_weight_and_bias(structure, centred):
    model = linear_model(bias=True, S=1)
    x, y = data((2,), regression=True, N=9)
    parts = [(x - x.mean(0) if centred else x + 1, y)]
    Phi, delta = features(model, parts, bias=True), torch.tensor([0.7, 1.9], dtype=torch.float64)
    per_feature = delta[[0, 0, 1]]
    at_the_mode(model.net[0], Phi, y, per_feature)
    laplace = Laplace(model, likelihood(True, SIGMA2), structure, "ggn", "tensor")
    assert laplace.structure.delta_names == ["0.weight", "0.bias"]
    found = evidence(laplace, parts, delta)
    error = abs(float(found - linear_gaussian_evidence(Phi, y, per_feature, SIGMA2)))
    # Two blocks leave out what weight and bias have in common: nothing, where the inputs have mean zero.
    assert error < 1e-9 if structure == "full" or centred else error > 0.1


@pytest.mark.parametrize("structure", ["kron", "full"])
def test_exact_in_the_last_layer_of_any_network(structure):
    model = linear_model(True, 4)
    model.net = filled(nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3)))
    x, y = data((2,), regression=True, N=9)
    parts = batches(x, y, 4)
    inner = OrbitAverage(model.net[:2], model.transform, samples=4)
    Phi = torch.cat([inner.average(x, generator(seeds(k))) for k, (x, _) in enumerate(parts)]).detach()
    Phi = torch.cat([Phi, torch.ones_like(Phi[:, :1])], dim=1)
    delta = torch.tensor([0.7], dtype=torch.float64)
    at_the_mode(model.net[2], Phi, y, delta.expand(6))
    laplace = Laplace(model, likelihood(True, SIGMA2), structure, "ggn", only=["2"])
    expected = linear_gaussian_evidence(Phi, y, delta.expand(6), SIGMA2)
    torch.testing.assert_close(evidence(laplace, parts, delta), expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", ["points", "images"])
@pytest.mark.parametrize("output", ["ggn", "ef"])
@pytest.mark.parametrize("regression", [False, True])
def test_full_is_equation_9_with_dense_matrices(name, output, regression):
    net, shape = model(name)
    x, y = data(shape, regression)
    laplace = Laplace(net, likelihood(regression, SIGMA2), "full", output)
    views = net.views(x, generator(seeds(0))).unflatten(0, (len(x), -1)).detach()
    expected = laplace_evidence(net.net, views, y, 0.6, SIGMA2 if regression else None, output)
    found = evidence(laplace, [(x, y)], torch.tensor([0.6], dtype=torch.float64))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-9)
